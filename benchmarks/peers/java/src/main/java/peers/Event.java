package peers;

/** One event as a Java program would hold it. */
public class Event extends Timed {
    public String subject;
    public String predicate;
    public double value;

    public Event() {}

    public Event(long time, String subject, String predicate, double value) {
        this.time = time;
        this.subject = subject;
        this.predicate = predicate;
        this.value = value;
    }

    public String getSubject() {
        return subject;
    }

    public String getPredicate() {
        return predicate;
    }

    public double getValue() {
        return value;
    }
}
