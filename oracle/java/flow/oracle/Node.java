package flow.oracle;

import java.util.ArrayList;
import java.util.List;

/** A word, or a list that begins with a word: {@code (take 3)}. Numbers are words, too. */
final class Node {
  final String word;
  final List<Node> rest;

  private Node(String word, List<Node> rest) {
    this.word = word;
    this.rest = rest;
  }

  static Node parse(String text) {
    return new Parser(text).node();
  }

  Node at(int index) {
    return rest.get(index);
  }

  int size() {
    return rest.size();
  }

  long number() {
    return Long.parseLong(word);
  }

  long number(int index) {
    return at(index).number();
  }

  int count(int index) {
    return Math.toIntExact(number(index));
  }

  boolean flag(int index) {
    return number(index) != 0;
  }

  List<Node> from(int index) {
    return rest.subList(index, rest.size());
  }

  IllegalArgumentException unknown() {
    return new IllegalArgumentException("not known here: " + word);
  }

  private static final class Parser {
    private final String text;
    private int place = 0;

    Parser(String text) {
      this.text = text;
    }

    Node node() {
      if (text.charAt(place) != '(') {
        return new Node(word(), List.of());
      }
      place++;
      String word = word();
      List<Node> rest = new ArrayList<>();
      while (text.charAt(place) != ')') {
        place++; // the space
        rest.add(node());
      }
      place++;
      return new Node(word, rest);
    }

    private String word() {
      int begin = place;
      while (place < text.length() && " ()".indexOf(text.charAt(place)) < 0) {
        place++;
      }
      return text.substring(begin, place);
    }
  }
}
