package flow.oracle;

import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Maybe;
import io.reactivex.rxjava3.functions.BiFunction;
import io.reactivex.rxjava3.functions.Function;
import io.reactivex.rxjava3.schedulers.Schedulers;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Optional;
import org.reactivestreams.Publisher;

/** Makes flows of descriptions. Each operator has a twin in flow_oracle/pipelines.py. */
final class Pipelines {
  private final Trace trace;

  Pipelines(Trace trace) {
    this.trace = trace;
  }

  /**
   * @param node "(pipe source operator…)"
   * @param given the item that an inner flow is made of, or null
   */
  Flowable<Object> flow(Node node, Object given) {
    Flowable<Object> flow = source(node.at(0), given);
    for (Node operator : node.from(1)) {
      flow = apply(flow, operator, given);
    }
    return flow;
  }

  private Flowable<Object> source(Node node, Object given) {
    switch (node.word) {
      case "probe":
        return new Probe(trace, numbers(node.at(2)), node.at(0), node.flag(1));
      case "given_probe":
        return new Probe(trace, counted(given, node.number(2)), node.at(0), node.flag(1));
      case "range":
        return Flowable.rangeLong(node.number(0), node.number(1)).cast(Object.class);
      case "given_range":
        return Flowable.rangeLong(0, Math.floorMod(Functions.number(given), node.number(0)))
            .cast(Object.class);
      case "just":
        return Flowable.fromArray(numbers(node).toArray());
      case "given_just":
        return Flowable.just(given);
      case "iterable":
        return Flowable.fromIterable(() -> iterator(numbers(node.at(1)), node.at(0)));
      case "iterable_decided":
        return new Iterated(() -> iterator(numbers(node.at(1)), node.at(0)));
      case "callable":
        return callable(node);
      case "empty":
        return Flowable.empty();
      case "never":
        return Flowable.never();
      case "error":
        return Flowable.error(new OracleException(node.number(0)));
      case "defer":
        return Flowable.defer(() -> flow(node.at(0), given));
      case "defer_fail":
        return Flowable.defer(
            () -> {
              throw new OracleException(node.number(0));
            });
      case "concat":
        return Flowable.concatArray(flows(node, 0, given));
      case "merge":
        return Flowable.mergeArray(node.count(0), node.count(1), flows(node, 2, given));
      case "merge_sequential":
        return Flowable.concatArrayEager(node.count(0), node.count(1), flows(node, 2, given));
      case "zip":
        return Flowable.zipArray(
            Functions.combiner(node.at(0)), false, node.count(1), flows(node, 2, given));
      case "combine_latest":
        return Flowable.combineLatestArray(
            flows(node, 2, given), Functions.combiner(node.at(0)), node.count(1));
      case "amb":
        return Flowable.ambArray(flows(node, 0, given));
      case "sequence_equal":
        return Flowable.sequenceEqual(
                flow(node.at(1), given), flow(node.at(2), given), Object::equals, node.count(0))
            .map(Pipelines::number)
            .toFlowable();
      case "sequence_equal_decided":
        return Decided.sequenceEqual(
            flow(node.at(1), given), flow(node.at(2), given), node.count(0), false);
      case "sequence_equal_in_place":
        return Decided.sequenceEqual(
            flow(node.at(1), given), flow(node.at(2), given), node.count(0), true);
      default:
        throw node.unknown();
    }
  }

  private Flowable<Object> apply(Flowable<Object> flow, Node node, Object given) {
    switch (node.word) {
      case "map":
        return flow.map(Functions.mapper(node.at(0)));
      case "map_optional":
        {
          Function<Object, Object> mapper = Functions.mapper(node.at(0));
          return flow.mapOptional(item -> Optional.ofNullable(mapper.apply(item)));
        }
      case "do_on_next":
        {
          Function<Object, Object> function = Functions.mapper(node.at(0));
          return flow.doOnNext(function::apply);
        }
      case "filter":
        return flow.filter(Functions.predicate(node.at(0)));
      case "take":
        return flow.take(node.number(0));
      case "take_while":
        return flow.takeWhile(Functions.predicate(node.at(0)));
      case "take_until":
        return flow.takeUntil(Functions.predicate(node.at(0)));
      case "take_last":
        return flow.takeLast(node.count(0));
      case "skip":
        return flow.skip(node.number(0));
      case "skip_while":
        return flow.skipWhile(Functions.predicate(node.at(0)));
      case "skip_last":
        return flow.skipLast(node.count(0));
      case "distinct":
        return flow.distinct(Functions.key(node.at(0)));
      case "distinct_until_changed":
        return flow.distinctUntilChanged(Functions.key(node.at(0)));
      case "scan":
        return flow.scan(Functions.accumulator(node.at(0)));
      case "concat_map_decided":
        return Decided.concatMap(flow, mapper(node.at(1)), node.count(0));
      case "publish_decided":
        return Decided.publish(
            flow, shared -> inside(shared, node, 1, given), node.count(0));
      case "scan_seed_decided":
        return Decided.scan(flow, node.number(1), Functions.accumulator(node.at(0)));
      case "take_until_decided":
        return Decided.takeUntil(flow, Functions.predicate(node.at(0)));
      case "flat_map_iterable_decided":
        return Decided.concatMap(
            flow, item -> Flowable.fromIterable(counted(item, node.number(1))), node.count(0));
      case "skip_until_other_decided":
        return flow.skipUntil(flow(node.at(0), given).concatWith(Flowable.never()));
      case "on_backpressure_buffer_decided":
        return flow.onBackpressureBuffer(128, true, true);
      case "on_backpressure_latest_decided":
        return Decided.onBackpressureLatest(flow);
      case "take_decided":
        return node.number(0) == 0 ? Flowable.empty() : flow.take(node.number(0));
      case "reduce_decided":
        return Decided.reduce(flow, null, Functions.accumulator(node.at(0)));
      case "reduce_seed_decided":
        return Decided.reduce(flow, node.number(1), Functions.accumulator(node.at(0)));
      case "scan_seed":
        return flow.scan((Object) node.number(1), Functions.accumulator(node.at(0)));
      case "reduce":
        return flow.reduce(Functions.accumulator(node.at(0))).toFlowable();
      case "reduce_seed":
        return flow.reduce((Object) node.number(1), Functions.accumulator(node.at(0)))
            .toFlowable();
      case "count":
        return flow.count().toFlowable().cast(Object.class);
      case "all":
        return flow.all(Functions.predicate(node.at(0))).map(Pipelines::number).toFlowable();
      case "some":
        return flow.any(Functions.predicate(node.at(0))).map(Pipelines::number).toFlowable();
      case "is_empty":
        return flow.isEmpty().map(Pipelines::number).toFlowable();
      case "contains":
        return flow.contains(node.number(0)).map(Pipelines::number).toFlowable();
      case "to_list":
        return flow.toList().toFlowable().cast(Object.class);
      case "sort":
        return flow.sorted(Comparator.comparing(Functions::number));
      case "buffer":
        return flow.buffer(node.count(0), node.count(1)).cast(Object.class);
      case "pairwise":
        return flow.buffer(2, 1).filter(pair -> pair.size() == 2).cast(Object.class);
      case "element_at":
        return flow.elementAtOrError(node.number(0)).toFlowable();
      case "element_at_or_default":
        return flow.elementAt(node.number(0), node.number(1)).toFlowable();
      case "first_or_error":
        return flow.firstOrError().toFlowable();
      case "first_or_default":
        return flow.first(node.number(0)).toFlowable();
      case "last_or_error":
        return flow.lastOrError().toFlowable();
      case "last_or_default":
        return flow.last(node.number(0)).toFlowable();
      case "single_or_error":
        return flow.singleOrError().toFlowable();
      case "single_or_default":
        return flow.single(node.number(0)).toFlowable();
      case "ignore_elements":
        return flow.ignoreElements().toFlowable();
      case "start_with":
        return flow.startWithArray(numbers(node).toArray());
      case "end_with":
        return flow.concatWith(Flowable.fromIterable(numbers(node)));
      case "default_if_empty":
        return flow.defaultIfEmpty(node.number(0));
      case "on_error_return":
        return flow.onErrorReturnItem(node.number(0));
      case "on_error_complete":
        return flow.onErrorComplete();
      case "flat_map_iterable":
        return flow.concatMapIterable(
            item -> counted(item, node.number(1)), node.count(0));
      case "zip_with_iterable":
        {
          Function<Object[], Object> combiner = Functions.combiner(node.at(0));
          BiFunction<Object, Object, Object> both = (a, b) -> combiner.apply(new Object[] {a, b});
          return flow.zipWith(numbers(node.at(1)), both);
        }
      case "hide":
        return flow.hide();
      case "concat_map":
        return flow.concatMap(mapper(node.at(1)), node.count(0));
      case "concat_map_delay_error":
        return flow.concatMapDelayError(mapper(node.at(1)), true, node.count(0));
      case "concat_map_eager":
        return flow.concatMapEager(mapper(node.at(2)), node.count(0), node.count(1));
      case "flat_map":
        return flow.flatMap(mapper(node.at(2)), false, node.count(0), node.count(1));
      case "flat_map_delay_error":
        return flow.flatMap(mapper(node.at(2)), true, node.count(0), node.count(1));
      case "merge_all":
        return flow.map(mapper(node.at(2)))
            .flatMap(inner -> inner, false, node.count(0), node.count(1));
      case "switch_latest":
        return Flowable.switchOnNext(flow.map(mapper(node.at(1))), node.count(0));
      case "and_then":
        return flow.ignoreElements().andThen(flow(node.at(0), given));
      case "switch_map":
        return flow.switchMap(mapper(node.at(1)), node.count(0));
      case "concat_with":
        return flow.concatWith(flow(node.at(0), given));
      case "start_with_flows":
        return flow.startWith(flow(node.at(0), given));
      case "merge_with":
        return Flowable.mergeArray(2, node.count(0), flow, flow(node.at(1), given));
      case "zip_with":
        return Flowable.zipArray(
            Functions.combiner(node.at(0)), false, node.count(1), flow, flow(node.at(2), given));
      case "with_latest_from":
        return flow.withLatestFrom(
            List.of(flow(node.at(1), given)), Functions.combiner(node.at(0)));
      case "amb_with":
        return flow.ambWith(flow(node.at(0), given));
      case "switch_if_empty":
        return flow.switchIfEmpty(flow(node.at(0), given));
      case "on_error_resume":
        return flow.onErrorResumeNext(error -> flow(node.at(0), given));
      case "retry":
        return flow.retry(node.number(0));
      case "repeat":
        return flow.repeat(node.number(0));
      case "take_until_other":
        return flow.takeUntil(flow(node.at(0), given));
      case "skip_until_other":
        return flow.skipUntil(flow(node.at(0), given));
      case "observe_on":
        return flow.observeOn(Schedulers.trampoline(), node.flag(1), node.count(0));
      case "subscribe_on":
        return flow.subscribeOn(Schedulers.trampoline());
      case "rebatch_requests":
        return flow.rebatchRequests(node.count(0));
      case "on_backpressure_buffer":
        return flow.onBackpressureBuffer();
      case "on_backpressure_drop":
        return flow.onBackpressureDrop();
      case "on_backpressure_latest":
        return flow.onBackpressureLatest();
      case "group_by":
      case "group_by_decided":
        {
          Function<Object, Object> key = Functions.key(node.at(0));
          int prefetch = node.count(1);
          return (node.word.equals("group_by")
                  ? flow.groupBy(key, item -> item, false, prefetch)
                  : flow.groupBy(key, item -> item, false, prefetch, none -> new Decided.Ordered()))
              .flatMap(group -> inside(group, node, 3, null), false, node.count(2), prefetch);
        }
      case "window":
        return flow.window(node.number(0), node.number(1))
            .concatMapEager(window -> inside(window, node, 2, null));
      case "publish":
        return flow.publish(shared -> inside(shared, node, 1, given), node.count(0));
      default:
        throw node.unknown();
    }
  }

  /** Operators, from a part of a node on, behind a flow that an operator has made. */
  private Flowable<Object> inside(Flowable<Object> flow, Node node, int from, Object given) {
    for (Node operator : node.from(from)) {
      flow = apply(flow, operator, given);
    }
    return flow;
  }

  private Flowable<Object> callable(Node node) {
    Node result = node.at(0);
    return Maybe.<Object>fromCallable(
            () -> {
              switch (result.word) {
                case "null":
                  return null;
                case "error":
                  throw new OracleException(result.number(0));
                default:
                  return result.number();
              }
            })
        .toFlowable();
  }

  private Function<Object, Publisher<Object>> mapper(Node node) {
    return item -> flow(node, item);
  }

  private Flowable<Object>[] flows(Node node, int from, Object given) {
    @SuppressWarnings("unchecked")
    Flowable<Object>[] flows =
        node.from(from).stream().map(part -> flow(part, given)).toArray(Flowable[]::new);
    return flows;
  }

  /** An iterator that fails, if it is to, where its last item would have an successor. */
  private Iterator<Object> iterator(List<Object> items, Node end) {
    Iterator<Object> inner = items.iterator();
    return new Iterator<>() {
      @Override
      public boolean hasNext() {
        if (inner.hasNext()) {
          return true;
        }
        if (end.word.equals("error")) {
          throw new OracleException(end.number(0));
        }
        return false;
      }

      @Override
      public Object next() {
        if (!hasNext()) {
          throw new NoSuchElementException();
        }
        return inner.next();
      }
    };
  }

  private static Object number(boolean truth) {
    return truth ? 1L : 0L;
  }

  /** Up to modulus - 1 numbers, from that of the item on. */
  private static List<Object> counted(Object item, long modulus) {
    long first = Functions.number(item);
    List<Object> items = new ArrayList<>();
    for (long n = 0; n < Math.floorMod(first, modulus); n++) {
      items.add(first + n);
    }
    return items;
  }

  /** The words of a node as items. */
  private static List<Object> numbers(Node node) {
    List<Object> numbers = new ArrayList<>();
    for (Node word : node.rest) {
      numbers.add(word.number());
    }
    return numbers;
  }
}
