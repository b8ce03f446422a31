package peers;

/** A row of a reference table: the limit of a shop. */
public final class ShopLimit {
    private final String shop;
    private final long most;

    ShopLimit(String shop, long most) {
        this.shop = shop;
        this.most = most;
    }

    public String getShop() {
        return shop;
    }

    public long getMost() {
        return most;
    }
}
