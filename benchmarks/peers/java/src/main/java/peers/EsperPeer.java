package peers;

import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.EPDeployment;
import com.espertech.esper.runtime.client.EPEventService;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Esper, with time given by the events. Its windows are open at the end, so a millisecond is added to ours. */
final class EsperPeer implements Peer {
    private static final int MODULE = 500;
    private long matches;

    /** The query of a workload, or the lines of a file, {@code @FILE}, so many to a module that its class can hold them. */
    private static List<String> modules(String workload) throws IOException {
        if (!workload.startsWith("@")) {
            return List.of(query(workload));
        }
        List<String> lines = Files.readAllLines(Path.of(workload.substring(1)));
        List<String> modules = new ArrayList<>();
        for (int first = 0; first < lines.size(); first += MODULE) {
            modules.add(String.join("\n", lines.subList(first, Math.min(first + MODULE, lines.size()))));
        }
        return modules;
    }

    private static String query(String workload) {
        return switch (workload) {
            case "W1" ->
                "select a.subject as x from pattern [every a=Event(predicate='a')"
                        + " -> b=Event(predicate='b', subject=a.subject)]";
            case "W1r" ->
                "select a.subject as x from pattern [every a=Event(predicate='a')"
                        + " -> every b=Event(predicate='b', subject=a.subject)]";
            case "W2" ->
                "select p1.subject as company, p1.value as v1, p2.value as v2, p3.value as v3 from pattern"
                        + " [every p1=Event -> (p2=Event(subject=p1.subject, value < p1.value*0.7)"
                        + " -> p3=Event(subject=p1.subject, value > p1.value*1.05)) where timer:within(1000 sec 1 msec)]";
            case "W2u" ->
                "select p1.subject as company, p1.value as v1, p2.value as v2, p3.value as v3 from pattern"
                        + " [every p1=Event -> (every p2=Event(subject=p1.subject, value < p1.value*0.7)"
                        + " -> every p3=Event(subject=p1.subject, value > p1.value*1.05)) where timer:within(1000 sec 1 msec)]";
            case "W4" ->
                "select p1.subject as company, p1.value as v1, p2.value as v2 from pattern"
                        + " [every p1=Event -> p2=Event(subject=p1.subject, value > p1.value)]";
            case "W5" -> "select sum(value) as total from Event#length(100)";
            case "W5t" -> "select sum(value) as total from Event#time(600 sec)";
            default -> throw new IllegalArgumentException("Esper has no query for " + workload);
        };
    }

    @Override
    public Figures run(String workload, Event[] events, int warm) throws Exception {
        double started = Main.processor();
        Configuration configuration = new Configuration();
        configuration.getCommon().addEventType(Event.class);
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        EPRuntime runtime = EPRuntimeProvider.getRuntime("peer", configuration);
        runtime.initialize();
        for (String module : modules(workload)) {
            EPCompiled compiled =
                    EPCompilerProvider.getCompiler().compile(module, new CompilerArguments(configuration));
            EPDeployment deployment = runtime.getDeploymentService().deploy(compiled);
            for (EPStatement statement : deployment.getStatements()) {
                statement.addListener((added, removed, s, r) -> matches += added == null ? 0 : added.length);
            }
        }
        EPEventService service = runtime.getEventService();
        service.advanceTime(0);
        double loading = Main.processor() - started;
        double begun = 0;
        for (int i = 0; i < events.length; i++) {
            if (i == warm) {
                begun = Main.processor();
            }
            service.advanceTime(events[i].time);
            service.sendEventBean(events[i], "Event");
        }
        return new Figures(Main.processor() - begun, matches, loading);
    }
}
