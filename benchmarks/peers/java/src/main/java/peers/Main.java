package peers;

import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** {@code Main ENGINE WORKLOAD FILE WARM}: prints events, matches and processor seconds as one JSON object. */
public final class Main {
    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private Main() {}

    /** The processor time of this process so far, in seconds: all threads, the collector's included. */
    static double processor() {
        return SYSTEM.getProcessCpuTime() / 1e9;
    }

    public static void main(String[] args) throws Exception {
        Peer peer =
                switch (args[0]) {
                    case "esper" -> new EsperPeer();
                    case "siddhi" -> new SiddhiPeer();
                    case "flink" -> new FlinkPeer();
                    default -> throw new IllegalArgumentException("no engine " + args[0]);
                };
        Timed[] events = read(Path.of(args[2]));
        int warm = Integer.parseInt(args[3]);
        Peer.Figures figures = peer.run(args[1], events, warm);
        System.out.printf(
                "{\"events\": %d, \"matches\": %d, \"seconds\": %.6f, \"loading\": %.6f}%n",
                events.length - warm, figures.matches(), figures.seconds(), figures.loading());
        System.out.flush();
        Runtime.getRuntime().halt(0); // engines leave threads behind
    }

    /** Lines of {@code time,subject,predicate,value}, or of purchases; equal words are one object, as a reader with a dictionary makes them. */
    private static Timed[] read(Path file) throws Exception {
        List<Timed> events = new ArrayList<>();
        Map<String, String> words = new HashMap<>();
        try (BufferedReader lines = Files.newBufferedReader(file)) {
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] parts = line.split(",");
                if (parts.length == 7) {
                    String[] texts = new String[] {parts[1], parts[2], parts[4], parts[5]};
                    for (int i = 0; i < texts.length; i++) {
                        texts[i] = words.computeIfAbsent(texts[i], w -> w);
                    }
                    events.add(new Purchase(
                            Long.parseLong(parts[0]),
                            texts[0],
                            texts[1],
                            Integer.parseInt(parts[3]),
                            texts[2],
                            texts[3],
                            Integer.parseInt(parts[6])));
                    continue;
                }
                String subject = words.computeIfAbsent(parts[1], w -> w);
                String predicate = words.computeIfAbsent(parts[2], w -> w);
                events.add(new Event(Long.parseLong(parts[0]), subject, predicate, Double.parseDouble(parts[3])));
            }
        }
        return events.toArray(Timed[]::new);
    }
}
