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
    private static final int SHOPS = 100_000;
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
            case "W4", "W4n" ->
                "select p1.subject as company, p1.value as v1, p2.value as v2 from pattern"
                        + " [every p1=Event -> p2=Event(subject=p1.subject, value > p1.value)]";
            case "W5" -> "select sum(value) as total from Event#length(100)";
            case "W5t" -> "select sum(value) as total from Event#time(600 sec)";
            case "W10" ->
                "select card, city, amount, shop, kind, items from Purchase(amount > 800, items > 10)";
            case "W10n" ->
                "select a.card as card, a.city as source, a.amount as less, b.city as target, b.amount as more"
                        + " from pattern [every a=Purchase -> b=Purchase(card=a.card)] where b.amount > 3 * a.amount";
            case "W11" ->
                "create table Limits(shop string primary key, most long);\n"
                        + "insert into Limits select shop, most from ShopLimit;\n"
                        + "@name('found') select p.card as card, p.shop as shop, p.amount as amount, l.most as most"
                        + " from Purchase as p, Limits as l where p.shop = l.shop and p.amount > l.most";
            default -> throw new IllegalArgumentException("Esper has no query for " + workload);
        };
    }

    @Override
    public Figures run(String workload, Timed[] events, int warm) throws Exception {
        double started = Main.processor();
        Configuration configuration = new Configuration();
        for (Class<?> type : List.of(Event.class, Purchase.class, ShopLimit.class)) {
            configuration.getCommon().addEventType(type);
        }
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        EPRuntime runtime = EPRuntimeProvider.getRuntime("peer", configuration);
        runtime.initialize();
        for (String module : modules(workload)) {
            EPCompiled compiled =
                    EPCompilerProvider.getCompiler().compile(module, new CompilerArguments(configuration));
            EPDeployment deployment = runtime.getDeploymentService().deploy(compiled);
            for (EPStatement statement : deployment.getStatements()) {
                if (workload.equals("W11") && !statement.getName().equals("found")) {
                    continue; // what fills the table
                }
                statement.addListener((added, removed, s, r) -> matches += added == null ? 0 : added.length);
            }
        }
        EPEventService service = runtime.getEventService();
        service.advanceTime(0);
        if (workload.equals("W11")) {
            for (int shop = 0; shop < SHOPS; shop++) {
                service.sendEventBean(new ShopLimit("shop" + shop, 500 + shop * 7919L % 500), "ShopLimit");
            }
        }
        double loading = Main.processor() - started;
        double begun = 0;
        for (int i = 0; i < events.length; i++) {
            if (i == warm) {
                begun = Main.processor();
            }
            service.advanceTime(events[i].time);
            service.sendEventBean(events[i], events[i].getClass().getSimpleName());
        }
        return new Figures(Main.processor() - begun, matches, loading);
    }
}
