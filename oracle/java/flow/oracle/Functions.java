package flow.oracle;

import io.reactivex.rxjava3.functions.BiFunction;
import io.reactivex.rxjava3.functions.Function;
import io.reactivex.rxjava3.functions.Predicate;
import java.util.ArrayList;
import java.util.List;

/** The functions of pipelines. Each has a twin in flow_oracle/functions.py. */
final class Functions {
  private static final long PRIME = 10_007;

  private Functions() {}

  /** An item as a number: lists are added up. */
  static long number(Object item) {
    if (item instanceof Long n) {
      return n;
    }
    long sum = 0;
    for (Object part : (List<?>) item) {
      sum = Math.floorMod(sum + number(part), PRIME);
    }
    return sum;
  }

  static Function<Object, Object> mapper(Node node) {
    switch (node.word) {
      case "add":
        return item -> number(item) + node.number(0);
      case "multiply":
        return item -> Math.floorMod(number(item) * node.number(0), PRIME);
      case "modulo":
        return item -> Math.floorMod(number(item), node.number(0));
      case "number":
        return Functions::number;
      case "wrap":
        return item -> List.of(item);
      case "constant":
        return item -> node.number(0);
      case "fail":
        return item -> failing(node, item, item);
      case "null":
        return item -> hit(node, item) ? null : item;
      default:
        throw node.unknown();
    }
  }

  /** What items are compared by. */
  static Function<Object, Object> key(Node node) {
    Function<Object, Object> mapper = mapper(node);
    return item -> number(mapper.apply(item));
  }

  static Predicate<Object> predicate(Node node) {
    switch (node.word) {
      case "less":
        return item -> number(item) < node.number(0);
      case "greater":
        return item -> number(item) > node.number(0);
      case "modulo":
        return item -> hit(node, item);
      case "always":
        return item -> true;
      case "never":
        return item -> false;
      case "fail":
        return item -> failing(node, item, true);
      default:
        throw node.unknown();
    }
  }

  static BiFunction<Object, Object, Object> accumulator(Node node) {
    switch (node.word) {
      case "sum":
        return (a, b) -> Math.floorMod(number(a) + number(b), PRIME);
      case "digits":
        return (a, b) -> Math.floorMod(number(a) * 10 + number(b), PRIME);
      case "most":
        return (a, b) -> Math.max(number(a), number(b));
      case "last":
        return (a, b) -> b;
      case "fail":
        return (a, b) -> failing(node, b, b);
      case "null":
        return (a, b) -> hit(node, b) ? null : b;
      default:
        throw node.unknown();
    }
  }

  /** Makes one item of several. */
  static Function<Object[], Object> combiner(Node node) {
    switch (node.word) {
      case "list":
        return Functions::list;
      case "digits":
        return items -> {
          long made = 0;
          for (Object item : items) {
            made = Math.floorMod(made * 10 + number(item), PRIME);
          }
          return made;
        };
      case "fail":
        return items -> failing(node, list(items), list(items));
      case "null":
        return items -> hit(node, list(items)) ? null : list(items);
      default:
        throw node.unknown();
    }
  }

  private static Object list(Object[] items) {
    return new ArrayList<>(List.of(items));
  }

  /** Whether {@code number % modulus == rest}. */
  private static boolean hit(Node node, Object item) {
    return Math.floorMod(number(item), node.number(0)) == node.number(1);
  }

  private static <T> T failing(Node node, Object item, T result) {
    if (hit(node, item)) {
      throw new OracleException(node.number(2));
    }
    return result;
  }
}
