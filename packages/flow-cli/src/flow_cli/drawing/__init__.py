"""The parts of a flow, and what draws them: as a tree of text, as Mermaid, as SVG."""
