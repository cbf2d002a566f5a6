"""The order of a traced stage: sweeps over its rows, each of which waits for what the ones before it summed up."""

import torch
from torch import Tensor
from torch.fx import Graph, Node

__all__ = ["order_by_sweeps"]

_aten = torch.ops.aten


def order_by_sweeps(graph: Graph) -> None:
    """Compute once what a graph asks for twice, and have each sweep wait for all numbers a row that were found before.

    A sweep goes over rows (..., V); what it sums up, (..., 1), later ones combine rows with. Left alone, the compiler
    may put a sum into a loop with others that do not need it; what does need it lands in one more loop, where all that
    the two loops share is computed again.
    """
    _merge_equal(graph)
    size = max(_numel(node) for node in graph.nodes)
    sweeps = _sort(graph, size)
    for sweep in range(1, max(sweeps.values()) + 1):
        of_rows = [node for node, place in sweeps.items() if place == sweep and _numel(node) < size]
        numbers = [node for node in of_rows if _is_number_a_row(node) and _meets_rows(node, size)]
        if numbers:
            _hold(graph, numbers, of_rows[-1], size)


def _merge_equal(graph: Graph) -> None:
    known: dict[object, Node] = {}
    for node in graph.nodes:
        if node.op == "call_function":
            first = known.setdefault((node.target, str(node.args), str(node.kwargs)), node)
            if first is not node:
                node.replace_all_uses_with(first)
                graph.erase_node(node)


def _sort(graph: Graph, size: int) -> dict[Node, int]:
    """Put the nodes in the order of the sweep they belong to, which is returned, and first what has few numbers.

    The order is sound: what belongs to a sweep is made from what belongs to it or to earlier ones, and where rows are
    reduced to few numbers a new sweep begins.
    """
    sweeps: dict[Node, int] = {}
    for node in graph.nodes:
        begins = _numel(node) < size and any(_numel(source) == size for source in node.all_input_nodes)
        sweeps[node] = max((sweeps[source] for source in node.all_input_nodes), default=0) + begins
    inner = [node for node in graph.nodes if node.op not in ("placeholder", "output")]
    order = sorted(inner, key=lambda node: (sweeps[node], _numel(node) == size))
    last = graph.find_nodes(op="placeholder")[-1]
    for node in order:
        last.append(node)
        last = node
    return {node: sweeps[node] for node in order}


def _hold(graph: Graph, numbers: list[Node], after: Node, size: int) -> None:
    """Put numbers (rows, 1) together in memory, and let rows be combined with what is there."""
    rows = _numel(numbers[0])
    with graph.inserting_after(after):
        together = graph.call_function(_aten.cat.default, (numbers, -1))
    with graph.inserting_after(together):
        # Strides can only be taken of what is in memory.
        held = graph.call_function(_aten.as_strided.default, (together, (rows, len(numbers)), (len(numbers), 1)))
    for place, number in enumerate(numbers):
        with graph.inserting_after(held):
            one = graph.call_function(_aten.slice.Tensor, (held, -1, place, place + 1))
        number.replace_all_uses_with(one, delete_user_cb=lambda user: _numel(user) == size)


def _meets_rows(node: Node, size: int) -> bool:
    return any(_numel(user) == size for user in node.users)


def _is_number_a_row(node: Node) -> bool:
    value = node.meta.get("val")
    return isinstance(value, Tensor) and value.is_floating_point() and value.ndim == 2 and value.shape[-1] == 1


def _numel(node: Node) -> int:
    value = node.meta.get("val")
    return value.numel() if isinstance(value, Tensor) else 0
