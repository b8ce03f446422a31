package peers;

/** One purchase, an event of six columns. */
public final class Purchase extends Timed {
    private final String card;
    private final String city;
    private final int amount;
    private final String shop;
    private final String kind;
    private final int items;

    Purchase(long time, String card, String city, int amount, String shop, String kind, int items) {
        this.time = time;
        this.card = card;
        this.city = city;
        this.amount = amount;
        this.shop = shop;
        this.kind = kind;
        this.items = items;
    }

    public String getCard() {
        return card;
    }

    public String getCity() {
        return city;
    }

    public int getAmount() {
        return amount;
    }

    public String getShop() {
        return shop;
    }

    public String getKind() {
        return kind;
    }

    public int getItems() {
        return items;
    }
}
