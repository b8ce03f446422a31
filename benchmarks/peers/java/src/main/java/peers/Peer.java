package peers;

/** An engine that takes the first events to warm up and the others by the clock, in one deployment. */
public interface Peer {
    /** Runs the query over the events; the clock starts before event number {@code warm}. */
    Figures run(String workload, Timed[] events, int warm) throws Exception;

    /** Processor seconds of the measured part, the matches of the whole run, and the seconds until the first event. */
    record Figures(double seconds, long matches, double loading) {
        Figures(double seconds, long matches) {
            this(seconds, matches, 0);
        }
    }
}
