package peers;

import java.time.Duration;
import java.util.Arrays;
import java.util.concurrent.atomic.LongAdder;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.cep.CEP;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.cep.pattern.conditions.SimpleCondition;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/** Flink CEP in one process, keyed by subject, in event time, with objects reused. */
final class FlinkPeer implements Peer {
    private static Event[] events; // the source is a function of the number of the event
    private static int warm;
    private static volatile double begun;
    private static final LongAdder MATCHES = new LongAdder();

    private static Event event(long number) {
        if (number == warm) {
            begun = Main.processor();
        }
        return events[(int) number];
    }

    private static SimpleCondition<Event> kind(String predicate) {
        return SimpleCondition.of(e -> e.predicate.equals(predicate));
    }

    /** The event's value lies below (or above) that of p1 times the factor. */
    private static IterativeCondition<Event> against(double factor, boolean below) {
        return new IterativeCondition<>() {
            @Override
            public boolean filter(Event e, Context<Event> context) throws Exception {
                for (Event first : context.getEventsForPattern("p1")) {
                    return below ? e.value < first.value * factor : e.value > first.value * factor;
                }
                return false;
            }
        };
    }

    private static Pattern<Event, ?> pattern(String workload) {
        Duration within = Duration.ofMillis(1_000_001); // open at the end, where ours is closed
        return switch (workload) {
            case "W1" ->
                Pattern.<Event>begin("p1").where(kind("a")).followedBy("p2").where(kind("b"));
            case "W1r" ->
                Pattern.<Event>begin("p1").where(kind("a")).followedByAny("p2").where(kind("b"));
            case "W2" ->
                Pattern.<Event>begin("p1")
                        .followedBy("p2").where(against(0.7, true))
                        .followedBy("p3").where(against(1.05, false))
                        .within(within);
            case "W2u" ->
                Pattern.<Event>begin("p1")
                        .followedByAny("p2").where(against(0.7, true))
                        .followedByAny("p3").where(against(1.05, false))
                        .within(within);
            case "W4", "W4n" -> Pattern.<Event>begin("p1").followedBy("p2").where(against(1, false));
            default -> throw new IllegalArgumentException("Flink CEP has no pattern for " + workload);
        };
    }

    @Override
    public Figures run(String workload, Timed[] given, int first) throws Exception {
        Event[] all = Arrays.copyOf(given, given.length, Event[].class);
        events = all;
        warm = first;
        StreamExecutionEnvironment flink = StreamExecutionEnvironment.createLocalEnvironment(1, new Configuration());
        flink.getConfig().enableObjectReuse();
        DataGeneratorSource<Event> source =
                new DataGeneratorSource<>(
                        FlinkPeer::event, all.length, RateLimiterStrategy.noOp(), TypeInformation.of(Event.class));
        WatermarkStrategy<Event> times =
                WatermarkStrategy.<Event>forMonotonousTimestamps().withTimestampAssigner((e, t) -> e.time);
        DataStream<Event> keyed = flink.fromSource(source, times, "events").keyBy(e -> e.subject);
        CEP.pattern(keyed, pattern(workload))
                .inEventTime()
                .process(
                        new PatternProcessFunction<Event, Integer>() {
                            @Override
                            public void processMatch(
                                    java.util.Map<String, java.util.List<Event>> match,
                                    Context context,
                                    Collector<Integer> out) {
                                MATCHES.increment();
                            }
                        })
                .returns(Types.INT)
                .sinkTo(new DiscardingSink<>());
        flink.execute();
        return new Figures(Main.processor() - begun, MATCHES.sum());
    }
}
