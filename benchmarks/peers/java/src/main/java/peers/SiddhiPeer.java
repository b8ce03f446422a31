package peers;

import io.siddhi.core.SiddhiAppRuntime;
import io.siddhi.core.SiddhiManager;
import io.siddhi.core.stream.input.InputHandler;
import io.siddhi.core.stream.output.StreamCallback;

/** Siddhi, with time given by the events ({@code @app:playback}). */
final class SiddhiPeer implements Peer {
    private static final String STREAM =
            "@app:playback define stream E (subject string, predicate string, value double); ";

    private long matches;

    private static String query(String workload) {
        return switch (workload) {
            case "W1" ->
                "partition with (subject of E) begin from every a=E[predicate == 'a'] -> b=E[predicate == 'b']"
                        + " select a.subject as x insert into Out; end;";
            case "W2" ->
                "partition with (subject of E) begin from every p1=E -> p2=E[value < p1.value * 0.7]"
                        + " -> p3=E[value > p1.value * 1.05] within 1000 sec"
                        + " select p1.subject as company, p1.value as v1, p2.value as v2, p3.value as v3"
                        + " insert into Out; end;";
            case "W4", "W4n" ->
                "partition with (subject of E) begin from every p1=E -> p2=E[value > p1.value]"
                        + " select p1.subject as company, p1.value as v1, p2.value as v2 insert into Out; end;";
            case "W5" -> "from E#window.length(100) select sum(value) as total insert into Out;";
            case "W5t" -> "from E#window.time(600 sec) select sum(value) as total insert into Out;";
            default -> throw new IllegalArgumentException("Siddhi has no query for " + workload);
        };
    }

    @Override
    public Figures run(String workload, Timed[] events, int warm) throws Exception {
        SiddhiAppRuntime runtime = new SiddhiManager().createSiddhiAppRuntime(STREAM + query(workload));
        runtime.addCallback(
                "Out",
                new StreamCallback() {
                    @Override
                    public void receive(io.siddhi.core.event.Event[] received) {
                        matches += received.length;
                    }
                });
        InputHandler input = runtime.getInputHandler("E");
        runtime.start();
        double begun = 0;
        for (int i = 0; i < events.length; i++) {
            if (i == warm) {
                begun = Main.processor();
            }
            Event event = (Event) events[i];
            input.send(event.time, new Object[] {event.subject, event.predicate, event.value});
        }
        return new Figures(Main.processor() - begun, matches);
    }
}
