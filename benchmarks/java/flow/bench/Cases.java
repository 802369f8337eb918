package flow.bench;

import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.flowables.ConnectableFlowable;
import io.reactivex.rxjava3.functions.BiFunction;
import io.reactivex.rxjava3.functions.Function;
import io.reactivex.rxjava3.functions.Predicate;
import io.reactivex.rxjava3.functions.Supplier;
import io.reactivex.rxjava3.processors.FlowableProcessor;
import io.reactivex.rxjava3.processors.MulticastProcessor;
import io.reactivex.rxjava3.processors.PublishProcessor;
import io.reactivex.rxjava3.processors.ReplayProcessor;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.stream.IntStream;

/**
 * The cases of the Python benchmarks: what RxJava does, and the loop that does the same.
 *
 * <p>Each has the key of its table there, and the name of its way: by these the report joins them.
 */
final class Cases {
  private static final int ITEMS = 20_000;
  private static final int HOPS = 50_000;
  private static final int RUNS = 1_000;
  private static final int KEYS = 1_000;

  /** The one element, which the compiler cannot know. */
  private static volatile Integer element = 1;

  private static final Function<Integer, Integer> INCREMENT = n -> n + 1;
  private static final Predicate<Integer> POSITIVE = n -> n > 0;
  private static final Predicate<Integer> EVEN = n -> n % 2 == 0;
  private static final String HIDDEN = "subscribed, source hidden";
  private static final BiFunction<Integer, Integer, Integer> ADD = (a, b) -> a + b;

  private Cases() {}

  /** Work that may throw what RxJava's functions may. */
  private interface Loose {
    long run() throws Throwable;
  }

  private static Bench.Work work(Loose loose) {
    return () -> {
      try {
        return loose.run();
      } catch (Throwable error) {
        throw new AssertionError(error);
      }
    };
  }

  static List<Bench.Case> all() {
    List<Bench.Case> cases = new ArrayList<>();
    chain(cases, 1, Cases::loop1);
    chain(cases, 3, Cases::loop3);
    chain(cases, 5, Cases::loop5);
    chain(cases, 20, Cases::loop20);
    add(cases, "reduce", "subscribed", ITEMS, Cases::reducedByHand, () -> reduced(false));
    add(cases, "reduce", HIDDEN, ITEMS, Cases::reducedByHand, () -> reduced(true));
    add(cases, "take-skip", "subscribed", ITEMS, Cases::cutByHand, Cases::cut);
    add(cases, "one-element-alone", "subscribed", RUNS, Cases::aloneByHand, Cases::alone);
    add(cases, "one-element", "subscribed", RUNS, Cases::oneByHand, Cases::one);
    Flowable<Integer> once = Flowable.just(element).map(INCREMENT);
    add(
        cases,
        "one-element-assembled",
        "subscribed",
        RUNS,
        Cases::oneByHand,
        () -> assembled(once));
    Flowable<Integer> range = Flowable.range(0, ITEMS);
    add(
        cases,
        "map-just",
        "concat_map, subscribed",
        ITEMS,
        Cases::justByHand,
        () -> summed(range.concatMap(Flowable::just)));
    add(
        cases,
        "map-just",
        "concat_map behind a hidden source",
        ITEMS,
        Cases::justByHand,
        () -> summed(range.hide().concatMap(Flowable::just)));
    add(
        cases,
        "map-just",
        "flat_map, subscribed",
        ITEMS,
        Cases::justByHand,
        () -> summed(range.flatMap(Flowable::just)));
    for (int size : new int[] {100, 1_000}) {
      String key = "cross-" + size;
      int items = size * size;
      Loose floor = () -> crossByHand(size);
      Flowable<Integer> outer = Flowable.range(0, size);
      Function<Integer, Flowable<Integer>> inner = n -> Flowable.range(0, size);
      Function<Integer, Flowable<Integer>> hidden = n -> Flowable.range(0, size).hide();
      Loose concat = () -> summed(outer.concatMap(inner));
      add(cases, key, "concat_map, subscribed", items, floor, concat);
      add(cases, key, "flat_map, subscribed", items, floor, () -> summed(outer.flatMap(inner)));
      if (size == 100) {
        Loose concatHidden = () -> summed(outer.concatMap(hidden));
        Loose flatHidden = () -> summed(outer.flatMap(hidden));
        add(cases, key, "concat_map of hidden flows, subscribed", items, floor, concatHidden);
        add(cases, key, "flat_map of hidden flows, subscribed", items, floor, flatHidden);
      }
    }
    add(cases, "zip", "zip", ITEMS, Cases::zippedByHand, () -> zipped(false));
    add(cases, "zip", "zip of hidden flows", ITEMS, Cases::zippedByHand, () -> zipped(true));
    add(cases, "concat", "concat", ITEMS, Cases::concatenatedByHand, Cases::concatenated);
    for (int prefetch : new int[] {16, 128, 1_024}) {
      String name = "observe_on, prefetch " + prefetch;
      Loose floor = () -> hoppedByHand(prefetch);
      add(cases, "observe-on", name, HOPS, floor, () -> hopped(HOPPING.hide(), prefetch));
    }
    add(
        cases,
        "observe-on",
        "observe_on, fused source",
        HOPS,
        () -> hoppedByHand(128),
        () -> hopped(HOPPING, 128));
    for (int prefetch : new int[] {128, 1_024}) {
      String name = "merge, prefetch " + prefetch;
      add(cases, "merge", name, HOPS, Cases::mergedByHand, () -> merged(prefetch));
    }
    for (int subscribers : new int[] {1, 4, 16, 1_000}) {
      String key = "multicast-" + subscribers;
      int items = Math.max(1_000, 80_000 / (subscribers + 3));
      int all = items * subscribers;
      Loose floor = () -> sharedByHand(subscribers, items);
      Supplier<FlowableProcessor<Integer>> multicast = () -> MulticastProcessor.create(128);
      Loose byMulticast = () -> through(multicast, subscribers, items);
      add(cases, key, "MulticastProcessor", all, floor, byMulticast);
      add(cases, key, "publish", all, floor, () -> published(subscribers, items));
      Supplier<FlowableProcessor<Integer>> direct = PublishProcessor::create;
      Supplier<FlowableProcessor<Integer>> replay = () -> ReplayProcessor.createWithSize(16);
      Loose byDirect = () -> through(direct, subscribers, items);
      add(cases, key, "DirectProcessor", all, floor, byDirect);
      Loose byReplay = () -> through(replay, subscribers, items);
      add(cases, key, "ReplayProcessor(16)", all, floor, byReplay);
    }
    ReplayProcessor<Integer> kept = ReplayProcessor.create();
    List<Integer> listed = new ArrayList<>();
    for (int n = 0; n < ITEMS; n++) {
      kept.onNext(n);
      listed.add(n);
    }
    kept.onComplete();
    add(cases, "replay", "ReplayProcessor", ITEMS, () -> looped(listed), () -> summed(kept));
    String each = "group_by, each group subscribed";
    add(cases, "group-by", each, ITEMS, Cases::groupedByHand, Cases::grouped);
    return cases;
  }

  private static void add(
      List<Bench.Case> cases, String key, String name, int items, Loose floor, Loose rx) {
    cases.add(new Bench.Case(key, name, items, work(floor), work(rx)));
  }

  private static long summed(Flowable<Integer> flow) {
    Sum sum = new Sum();
    flow.subscribe(sum);
    return sum.total;
  }

  // -- synchronous chains

  private static void chain(List<Bench.Case> cases, int stages, Loose floor) {
    Flowable<Integer> range = Flowable.range(0, ITEMS);
    String key = "chain-" + stages;
    add(cases, key, "subscribed", ITEMS, floor, () -> summed(staged(range, stages)));
    add(cases, key, HIDDEN, ITEMS, floor, () -> summed(staged(range.hide(), stages)));
  }

  private static Flowable<Integer> staged(Flowable<Integer> source, int stages) {
    Flowable<Integer> flow = source;
    for (int index = 0; index < stages; index++) {
      flow = index % 2 == 0 ? flow.map(INCREMENT) : flow.filter(POSITIVE);
    }
    return flow;
  }

  private static long loop1() throws Throwable {
    Sum sum = new Sum();
    for (int each = 0; each < ITEMS; each++) {
      Integer n = each;
      n = INCREMENT.apply(n);
      sum.accept(n);
    }
    return sum.total;
  }

  private static long loop3() throws Throwable {
    Sum sum = new Sum();
    for (int each = 0; each < ITEMS; each++) {
      Integer n = each;
      n = INCREMENT.apply(n);
      if (!POSITIVE.test(n)) {
        continue;
      }
      n = INCREMENT.apply(n);
      sum.accept(n);
    }
    return sum.total;
  }

  private static long loop5() throws Throwable {
    Sum sum = new Sum();
    for (int each = 0; each < ITEMS; each++) {
      Integer n = each;
      n = INCREMENT.apply(n);
      if (!POSITIVE.test(n)) {
        continue;
      }
      n = INCREMENT.apply(n);
      if (!POSITIVE.test(n)) {
        continue;
      }
      n = INCREMENT.apply(n);
      sum.accept(n);
    }
    return sum.total;
  }

  private static long loop20() throws Throwable {
    Sum sum = new Sum();
    for (int each = 0; each < ITEMS; each++) {
      Integer n = each;
      n = INCREMENT.apply(n);
      if (!POSITIVE.test(n)) {
        continue;
      }
      n = INCREMENT.apply(n);
      if (!POSITIVE.test(n)) {
        continue;
      }
      n = INCREMENT.apply(n);
      if (!POSITIVE.test(n)) {
        continue;
      }
      n = INCREMENT.apply(n);
      if (!POSITIVE.test(n)) {
        continue;
      }
      n = INCREMENT.apply(n);
      if (!POSITIVE.test(n)) {
        continue;
      }
      n = INCREMENT.apply(n);
      if (!POSITIVE.test(n)) {
        continue;
      }
      n = INCREMENT.apply(n);
      if (!POSITIVE.test(n)) {
        continue;
      }
      n = INCREMENT.apply(n);
      if (!POSITIVE.test(n)) {
        continue;
      }
      n = INCREMENT.apply(n);
      if (!POSITIVE.test(n)) {
        continue;
      }
      n = INCREMENT.apply(n);
      if (!POSITIVE.test(n)) {
        continue;
      }
      sum.accept(n);
    }
    return sum.total;
  }

  private static long reducedByHand() throws Throwable {
    Integer total = 0;
    for (int each = 0; each < ITEMS; each++) {
      Integer n = INCREMENT.apply(each);
      if (EVEN.test(n)) {
        total = ADD.apply(total, n);
      }
    }
    return total;
  }

  private static long reduced(boolean hidden) {
    Flowable<Integer> range = Flowable.range(0, ITEMS);
    Flowable<Integer> source = hidden ? range.hide() : range;
    return source.map(INCREMENT).filter(EVEN).reduce(0, ADD).blockingGet();
  }

  private static long cutByHand() {
    Sum sum = new Sum();
    int skipped = 0;
    int taken = 0;
    for (int n = 0; n < ITEMS; n++) {
      if (skipped < ITEMS / 10) {
        skipped++;
      } else {
        sum.accept(n);
        if (++taken == ITEMS / 10 * 8) {
          break;
        }
      }
    }
    return sum.total;
  }

  private static long cut() {
    return summed(Flowable.range(0, ITEMS).skip(ITEMS / 10).take(ITEMS / 10 * 8));
  }

  private static long aloneByHand() {
    Sum sum = new Sum();
    for (int run = 0; run < RUNS; run++) {
      sum.accept(element);
    }
    return sum.total;
  }

  private static long alone() {
    Sum sum = new Sum();
    for (int run = 0; run < RUNS; run++) {
      Flowable.just(element).subscribe(sum);
    }
    return sum.total;
  }

  private static long oneByHand() throws Throwable {
    Sum sum = new Sum();
    for (int run = 0; run < RUNS; run++) {
      sum.accept(INCREMENT.apply(element));
    }
    return sum.total;
  }

  private static long one() {
    Sum sum = new Sum();
    for (int run = 0; run < RUNS; run++) {
      Flowable.just(element).map(INCREMENT).subscribe(sum);
    }
    return sum.total;
  }

  private static long assembled(Flowable<Integer> once) {
    Sum sum = new Sum();
    for (int run = 0; run < RUNS; run++) {
      once.subscribe(sum);
    }
    return sum.total;
  }

  // -- flows that items become

  private static long justByHand() throws Throwable {
    Sum sum = new Sum();
    for (int n = 0; n < ITEMS; n++) {
      if (Flowable.just(n) instanceof Supplier<?> constant) {
        sum.accept((Integer) constant.get());
      }
    }
    return sum.total;
  }

  private static long crossByHand(int size) {
    Sum sum = new Sum();
    for (int one = 0; one < size; one++) {
      for (int n = 0; n < size; n++) {
        sum.accept(n);
      }
    }
    return sum.total;
  }

  // -- flows that are joined or split

  private static long zippedByHand() throws Throwable {
    Sum sum = new Sum();
    for (int n = 0; n < ITEMS; n++) {
      sum.accept(ADD.apply(n, n));
    }
    return sum.total;
  }

  private static long zipped(boolean hidden) {
    Flowable<Integer> range = Flowable.range(0, ITEMS);
    Flowable<Integer> source = hidden ? range.hide() : range;
    return summed(Flowable.zip(source, source, ADD));
  }

  private static long concatenatedByHand() {
    Sum sum = new Sum();
    for (int part = 0; part < 10; part++) {
      for (int n = 0; n < ITEMS / 10; n++) {
        sum.accept(n);
      }
    }
    return sum.total;
  }

  private static long concatenated() {
    List<Flowable<Integer>> parts =
        IntStream.range(0, 10).mapToObj(part -> Flowable.range(0, ITEMS / 10)).toList();
    return summed(Flowable.concat(parts));
  }

  private static long groupedByHand() {
    Map<Integer, Sum> sums = new HashMap<>();
    for (int n = 0; n < ITEMS; n++) {
      sums.computeIfAbsent(n % KEYS, key -> new Sum()).accept(n);
    }
    return sums.values().stream().mapToLong(sum -> sum.total).sum();
  }

  private static long grouped() {
    List<Sum> sums = new ArrayList<>();
    Flowable.range(0, ITEMS)
        .groupBy(n -> n % KEYS)
        .subscribe(
            group -> {
              Sum sum = new Sum();
              sums.add(sum);
              group.subscribe(sum);
            });
    return sums.stream().mapToLong(sum -> sum.total).sum();
  }

  // -- threads

  private static final ExecutorService ONE = Executors.newSingleThreadExecutor();
  private static final ExecutorService FOUR = Executors.newFixedThreadPool(4);

  private static final Flowable<Integer> HOPPING = Flowable.range(0, HOPS);

  private static long hoppedByHand(int credit) throws InterruptedException {
    Sum sum = new Sum();
    new CreditHop(ONE, HOPS, credit, sum).await();
    return sum.total;
  }

  private static long hopped(Flowable<Integer> source, int prefetch)
      throws InterruptedException {
    Sum sum = new Sum();
    CountDownLatch done = new CountDownLatch(1);
    source
        .observeOn(Schedulers.from(ONE), false, prefetch)
        .subscribe(sum, error -> done.countDown(), done::countDown);
    done.await();
    return sum.total;
  }

  private static long mergedByHand() throws InterruptedException {
    Sum sum = new Sum();
    CountDownLatch done = new CountDownLatch(4);
    for (int thread = 0; thread < 4; thread++) {
      FOUR.execute(
          () -> {
            for (int n = 0; n < HOPS / 4; n++) {
              synchronized (sum) {
                sum.accept(n);
              }
            }
            done.countDown();
          });
    }
    done.await();
    return sum.total;
  }

  private static long merged(int prefetch) throws InterruptedException {
    Sum sum = new Sum();
    CountDownLatch done = new CountDownLatch(1);
    Flowable<Integer> part = Flowable.range(0, HOPS / 4).subscribeOn(Schedulers.from(FOUR));
    Flowable.merge(List.of(part, part, part, part), 4, prefetch)
        .subscribe(sum, error -> done.countDown(), done::countDown);
    done.await();
    return sum.total;
  }

  // -- many subscribers

  private static List<Sum> sums(int subscribers) {
    return IntStream.range(0, subscribers).mapToObj(index -> new Sum()).toList();
  }

  private static long total(List<Sum> sums) {
    return sums.stream().mapToLong(sum -> sum.total).sum();
  }

  private static long sharedByHand(int subscribers, int items) {
    List<Sum> sums = sums(subscribers);
    for (int n = 0; n < items; n++) {
      Integer item = n;
      for (Sum sum : sums) {
        sum.accept(item);
      }
    }
    return total(sums);
  }

  private static long through(
      Supplier<FlowableProcessor<Integer>> make, int subscribers, int items) throws Throwable {
    List<Sum> sums = sums(subscribers);
    FlowableProcessor<Integer> processor = make.get();
    sums.forEach(processor::subscribe);
    Flowable.range(0, items).subscribe(processor);
    return total(sums);
  }

  private static long published(int subscribers, int items) {
    List<Sum> sums = sums(subscribers);
    ConnectableFlowable<Integer> flow = Flowable.range(0, items).publish();
    sums.forEach(flow::subscribe);
    flow.connect();
    return total(sums);
  }

  private static long looped(List<Integer> items) {
    Sum sum = new Sum();
    for (Integer item : items) {
      sum.accept(item);
    }
    return sum.total;
  }
}
