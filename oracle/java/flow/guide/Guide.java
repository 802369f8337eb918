package flow.guide;

import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;

import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Maybe;
import io.reactivex.rxjava3.core.Single;
import io.reactivex.rxjava3.plugins.RxJavaPlugins;
import io.reactivex.rxjava3.schedulers.TestScheduler;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import java.util.stream.StreamSupport;
import org.reactivestreams.Publisher;

/** What the rows of the migration guide are made of; a subclass has a method for each of them. */
public abstract class Guide {
    /** The error of Python. */
    public static final class KeyError extends RuntimeException {}

    protected final TestScheduler scheduler = new TestScheduler();
    protected final List<Object> seen = new ArrayList<>();
    protected final Flowable<Integer> items = Flowable.just(3, 1, 2, 2);
    protected final Flowable<Integer> failing =
            Flowable.concat(Flowable.just(1), Flowable.error(new KeyError()));

    /** 1, 2, 3 and 4 at the seconds 1, 3, 7 and 9, and the end at the tenth. */
    protected final Flowable<Integer> ticks =
            Flowable.mergeArray(
                    at(1, 1), at(3, 2), at(7, 3), at(9, 4), at(10, 0).filter(n -> n > 0));

    private Flowable<Integer> at(int second, int item) {
        return Flowable.timer(second, SECONDS, scheduler).map(zero -> item);
    }

    /** Print what the row gives, as Python writes it: pairs of time and item, and the end. */
    protected final void show(Callable<Object> row) {
        List<String> items = new ArrayList<>();
        String[] end = {"never"};
        RxJavaPlugins.setErrorHandler(error -> {});
        try {
            Object made = row.call();
            if (made instanceof Single<?>) {
                made = ((Single<?>) made).toFlowable();
            } else if (made instanceof Maybe<?>) {
                made = ((Maybe<?>) made).toFlowable();
            }
            if (made instanceof Publisher<?>) {
                Flowable.fromPublisher((Publisher<?>) made)
                        .subscribe(
                                item -> items.add(timed(item)),
                                error -> end[0] = error.getClass().getSimpleName(),
                                () -> end[0] = "completed");
                scheduler.advanceTimeBy(1000, SECONDS);
            } else {
                items.add(timed(made));
                end[0] = "completed";
            }
        } catch (Exception error) {
            end[0] = error.getClass().getSimpleName();
        }
        System.out.println("(" + items + ", '" + end[0] + "')");
    }

    private String timed(Object item) {
        return "(" + scheduler.now(MILLISECONDS) / 1000.0 + ", " + literal(item) + ")";
    }

    private static String literal(Object value) {
        if (value instanceof Boolean) {
            return (Boolean) value ? "True" : "False";
        }
        if (value instanceof Number) {
            return value.toString();
        }
        if (value instanceof Map<?, ?>) {
            return ((Map<?, ?>) value)
                    .entrySet().stream()
                            .map(pair -> literal(pair.getKey()) + ": " + literal(pair.getValue()))
                            .collect(Collectors.joining(", ", "{", "}"));
        }
        if (value instanceof Iterable<?>) {
            return StreamSupport.stream(((Iterable<?>) value).spliterator(), false)
                    .map(Guide::literal)
                    .collect(Collectors.joining(", ", "[", "]"));
        }
        return "'" + value + "'";
    }

    /** Print whether Java has a class, or a member of a class, of that name. */
    protected static void find(String name) {
        String[] parts = name.split("\\.");
        boolean nested = parts[0].equals("Flow") && Character.isUpperCase(parts[1].charAt(0));
        String owner = nested ? "Flow$" + parts[1] : parts[0];
        String member = parts.length > (nested ? 2 : 1) ? parts[parts.length - 1] : null;
        boolean found = false;
        for (String within : new String[] {"java.util.concurrent.", "java.lang."}) {
            try {
                Class<?> type = Class.forName(within + owner);
                found |= member == null || has(type, member);
            } catch (ClassNotFoundException error) {
                continue;
            }
        }
        System.out.println(found ? "True" : "False");
    }

    private static boolean has(Class<?> type, String member) {
        return Arrays.stream(type.getMethods()).anyMatch(each -> each.getName().equals(member))
                || Arrays.stream(type.getFields()).anyMatch(each -> each.getName().equals(member));
    }
}
