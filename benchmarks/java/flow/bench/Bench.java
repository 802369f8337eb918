package flow.bench;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Times one case of RxJava and the plain loop that does its work, in turn, in this virtual machine.
 *
 * <p>Both are run until the compiler has had its time, then in rounds. What is printed is a line of
 * JSON: the medians, and the spread of the ratio.
 */
public final class Bench {
  private static final long WARM_UP_NS = 1_000_000_000L;
  private static final long ROUND_NS = 30_000_000L;

  /** Where results go, so that the compiler cannot drop what makes them. */
  private static volatile long sink;

  private Bench() {}

  /** Work whose result says that it was done. */
  interface Work {
    long run() throws Exception;
  }

  /** A case: a key that the Python cases have, too, and what RxJava's way is called. */
  record Case(String key, String name, int items, Work floor, Work rx) {
    String id() {
      return key + "/" + name;
    }
  }

  public static void main(String[] arguments) throws Exception {
    List<Case> cases = Cases.all();
    if (arguments.length == 0) {
      cases.forEach(each -> System.out.println(each.id()));
      System.exit(0);
    }
    Case chosen =
        cases.stream().filter(each -> each.id().equals(arguments[0])).findFirst().orElseThrow();
    System.out.println(measured(chosen, Integer.parseInt(arguments[1])));
    System.exit(0); // threads of pools may be left
  }

  private static String measured(Case chosen, int rounds) throws Exception {
    long expected = chosen.floor().run();
    long found = chosen.rx().run();
    if (expected != found) {
      throw new AssertionError(chosen.id() + " gave " + found + ", not " + expected);
    }
    int floorTimes = warmedUp(chosen.floor());
    int rxTimes = warmedUp(chosen.rx());
    double[] floor = new double[rounds];
    double[] rx = new double[rounds];
    double[] ratios = new double[rounds];
    for (int round = 0; round < rounds; round++) {
      floor[round] = timed(chosen.floor(), floorTimes) / chosen.items();
      rx[round] = timed(chosen.rx(), rxTimes) / chosen.items();
      ratios[round] = rx[round] / floor[round];
    }
    double ratio = median(ratios);
    Arrays.sort(ratios);
    return String.format(
        Locale.ROOT,
        "{\"key\": \"%s\", \"name\": \"%s\", \"floor_ns\": %f, \"ns\": %f, \"ratio\": %f,"
            + " \"low\": %f, \"high\": %f, \"rounds\": %d}",
        chosen.key(),
        chosen.name(),
        median(floor),
        median(rx),
        ratio,
        ratios[0],
        ratios[rounds - 1],
        rounds);
  }

  /** Runs the work until it is warm, and returns how many times fill a round. */
  private static int warmedUp(Work work) throws Exception {
    long start = System.nanoTime();
    long last;
    do {
      long before = System.nanoTime();
      sink = work.run();
      last = System.nanoTime() - before;
    } while (System.nanoTime() - start < WARM_UP_NS);
    return (int) Math.max(1, Math.min(ROUND_NS / Math.max(1, last), 100_000));
  }

  private static double timed(Work work, int times) throws Exception {
    long start = System.nanoTime();
    for (int time = 0; time < times; time++) {
      sink = work.run();
    }
    return (System.nanoTime() - start) / (double) times;
  }

  private static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    int half = sorted.length / 2;
    return sorted.length % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }
}
