package peers;

/** What has a time, which counts milliseconds. */
public abstract class Timed {
    public long time;

    public long getTime() {
        return time;
    }
}
