package flow.oracle;

import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.functions.BiFunction;
import io.reactivex.rxjava3.functions.Function;
import io.reactivex.rxjava3.functions.Predicate;
import io.reactivex.rxjava3.internal.operators.flowable.FlowablePublishMulticast;
import java.util.AbstractMap.SimpleEntry;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.reactivestreams.Publisher;

/** RxJava's operators put together so that they do what this library has decided to do. */
final class Decided {
  private Decided() {}

  /** The seed itself is no item. */
  static Flowable<Object> scan(
      Flowable<Object> flow, Object seed, BiFunction<Object, Object, Object> accumulator) {
    return Flowable.defer(
        () -> {
          AtomicReference<Object> total = new AtomicReference<>(seed);
          return flow.map(
              item -> {
                Object made = accumulator.apply(total.get(), item);
                total.set(made);
                return made;
              });
        });
  }

  /** Whether an item is the last one is asked before it is sent. */
  static Flowable<Object> takeUntil(Flowable<Object> flow, Predicate<Object> predicate) {
    Predicate<SimpleEntry<Object, Boolean>> last = SimpleEntry::getValue;
    return flow.map(item -> new SimpleEntry<>(item, predicate.test(item)))
        .takeUntil(last)
        .map(SimpleEntry::getKey);
  }

  /** An error comes after the item that waits. */
  static Flowable<Object> onBackpressureLatest(Flowable<Object> flow) {
    return Flowable.defer(
        () -> {
          AtomicReference<Throwable> failure = new AtomicReference<>();
          return flow.doOnError(failure::set)
              .onErrorComplete()
              .onBackpressureLatest()
              .concatWith(
                  Flowable.defer(
                      () -> {
                        Throwable error = failure.get();
                        return error == null ? Flowable.empty() : Flowable.error(error);
                      }));
        });
  }

  /** Only the result must not be null. */
  static Flowable<Object> reduce(
      Flowable<Object> flow, Object seed, BiFunction<Object, Object, Object> accumulator) {
    Flowable<Optional<Object>> items = flow.map(Optional::of);
    BiFunction<Optional<Object>, Optional<Object>, Optional<Object>> boxed =
        (a, b) -> Optional.ofNullable(accumulator.apply(a.orElse(null), b.get()));
    Flowable<Optional<Object>> result =
        seed == null
            ? items.reduce(boxed).toFlowable()
            : items.reduce(Optional.of(seed), boxed).toFlowable();
    return result.map(made -> made.orElse(null));
  }

  /** An error comes after the flows of the items before it: it waits as an item does. */
  static Flowable<Object> concatMap(
      Flowable<Object> flow, Function<Object, Publisher<Object>> mapper, int prefetch) {
    return flow.materialize()
        .filter(signal -> !signal.isOnComplete())
        .concatMap(
            signal ->
                signal.isOnError()
                    ? Flowable.error(signal.getError())
                    : mapper.apply(signal.getValue()),
            prefetch);
  }

  /** An error comes after the items before it. Not fused: a late subscriber would not hear of it. */
  static Flowable<Object> publish(
      Flowable<Object> flow, Function<Flowable<Object>, Flowable<Object>> selector, int prefetch) {
    return new FlowablePublishMulticast<>(flow.hide(), selector, prefetch, true);
  }

  /** The answer is there as soon as one flow has ended where the other one has an item. */
  static Flowable<Object> sequenceEqual(
      Flowable<Object> first, Flowable<Object> second, int prefetch, boolean errorsInPlace) {
    Object end = new Object();
    return Flowable.zip(
            first.concatWith(Flowable.just(end)),
            second.concatWith(Flowable.just(end)),
            Object::equals,
            errorsInPlace,
            prefetch)
        .all(same -> same)
        .map(same -> (Object) (same ? 1L : 0L))
        .toFlowable();
  }

  /** In the order in which keys came; may be changed by those who go through its values. */
  static final class Ordered extends LinkedHashMap<Object, Object> {
    @Override
    public Collection<Object> values() {
      return new ArrayList<>(super.values());
    }
  }
}
