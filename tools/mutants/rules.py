"""Errors by rule: what a tired engineer forgets, turned round or left out, one place at a time.

    terms    a + b -> a, -> b, -> a - b;  a - b -> a, -> a + b;  a * b -> a, -> b;  a / b -> a;  -a -> a;
             min <-> max;  x.clamp(...), x.abs(), x.sqrt() -> x;  math.sqrt(D) -> 1;  gamma(n) -> 0;
             where(c, a, b) -> a, -> b;  a < b -> a >= b;  small module constants -> 0;  x += a left out
    checks   f(...) as a statement left out;  if ...: raise, if ...: return nothing -> never;
             a and b -> a, -> b;  a < b -> a <= b;  allow_pickle, weights_only, allow_nan turned round;
             project(z, ...) -> z
    hashes   an entry of a dictionary or tuple left out;  a + b -> a, -> b;  sorted(x) -> x

Texts of messages, annotations, slices and default values are left alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

TERMS, CHECKS, HASHES = "terms", "checks", "hashes"
TURNED = {"min": "max", "amin": "amax", "minimum": "maximum", "cummin": "cummax", "argmin": "argmax", "aminmax": ""}
TURNED |= {other: one for one, other in TURNED.items() if other}
STRIPPED = ("clamp", "abs", "sqrt", "square", "relu", "nan_to_num", "nextafter")
FLAGS = ("allow_pickle", "weights_only", "allow_nan", "follow_symlinks")
OPPOSITE = {ast.Lt: ">=", ast.LtE: ">", ast.Gt: "<=", ast.GtE: "<"}
BESIDE = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
SMALL = 1e-6  # module constants below this are rounding or slack
TEXT = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)


@dataclass(frozen=True)
class Edit:
    """One planted error: in ``function`` the text ``before`` (bytes ``start`` to ``end``) becomes ``after``."""

    function: str
    rule: str
    before: str
    after: str
    start: int
    end: int
    line: int

    def applied(self, source: bytes) -> bytes:
        """The source with this error in it."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def plant(source: bytes, kinds: frozenset[str]) -> list[Edit]:
    """Every error that these kinds of rules can plant in a module."""
    planter = _Planter(source, kinds)
    planter.module()
    return [edit for edit in planter.edits if _parses(edit.after)]


def _parses(text: str) -> bool:
    """Is it a whole expression? A piece of one, a sign or a name, is put where another was."""
    try:
        ast.parse(text, mode="eval" if text.startswith("(") else "exec")
    except SyntaxError:
        return not text.startswith("(")
    return True


class _Planter:
    def __init__(self, source: bytes, kinds: frozenset[str]) -> None:
        self.source, self.kinds = source, kinds
        self.edits: list[Edit] = []
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.names: list[str] = []

    def module(self) -> None:
        """Functions and methods; of what stands outside them only small constants."""
        for node in ast.parse(self.source).body:
            if isinstance(node, ast.Assign) and TERMS in self.kinds:
                self._constant(node)
            self._definitions(node)

    def _definitions(self, node: ast.AST) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self.names.append(node.name)
            for statement in node.body:
                self.walk(statement)
            self.names.pop()
        elif isinstance(node, ast.ClassDef):
            self.names.append(node.name)
            for statement in node.body:
                self._definitions(statement)
            self.names.pop()

    def _constant(self, node: ast.Assign) -> None:
        try:
            value = eval(compile(ast.Expression(node.value), "", "eval"), {"__builtins__": {}})
        except Exception:
            return
        if isinstance(value, float) and 0 < abs(value) < SMALL:
            self._add("constant -> 0", node.value, "0.0", function=ast.unparse(node.targets[0]))

    def walk(self, node: ast.AST) -> None:
        """Plant what can be planted in ``node`` and below it."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._definitions(node)
            return
        if _is_message(node) or isinstance(
            node, (ast.JoinedStr, ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.Constant)
        ):
            return
        if TERMS in self.kinds:
            self._terms(node)
        if CHECKS in self.kinds:
            self._checks(node)
        if HASHES in self.kinds:
            self._hashes(node)
        for child in self._below(node):
            self.walk(child)

    @staticmethod
    def _below(node: ast.AST) -> Iterator[ast.AST]:
        """What is looked at inside: no slices, no annotations, and of ``require(...)`` the condition only."""
        if isinstance(node, ast.Subscript):
            yield node.value
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                yield node.value
        elif isinstance(node, ast.Call):
            yield node.func
            yield from node.args[:1] if _called(node) == "require" else node.args
            yield from (word.value for word in node.keywords if word.arg not in ("dim", "dtype", "device"))
        elif isinstance(node, ast.arguments):
            return
        else:
            yield from ast.iter_child_nodes(node)

    def _terms(self, node: ast.AST) -> None:
        if isinstance(node, ast.BinOp):
            self._operation(node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Invert)):
            if not isinstance(node.operand, ast.Constant) and "inf" not in self._text(node.operand)[-4:]:
                self._add("sign or not left out", node, self._raw(node.operand))
        elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in OPPOSITE:
            sign = OPPOSITE[type(node.ops[0])]
            self._add("comparison turned", node, f"{self._raw(node.left)} {sign} {self._raw(node.comparators[0])}")
        elif isinstance(node, ast.Call):
            self._call(node)
        elif isinstance(node, ast.AugAssign):
            self._add("statement left out", node, "pass", bare=True)
        elif isinstance(node, ast.IfExp):
            self._add("first case only", node, self._raw(node.body))
            self._add("second case only", node, self._raw(node.orelse))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and CHECKS not in self.kinds:
            self._add("statement left out", node, "pass", bare=True)

    def _operation(self, node: ast.BinOp) -> None:
        left, right = self._raw(node.left), self._raw(node.right)
        if isinstance(node.left, TEXT) or isinstance(node.right, TEXT) or _is_text(node.left) or _is_text(node.right):
            return
        if isinstance(node.op, (ast.Add, ast.Sub)):
            sign = "-" if isinstance(node.op, ast.Add) else "+"
            self._add("right term left out", node, left)
            self._add("sign of a term turned", node, f"{left} {sign} ({right})")
            if isinstance(node.op, ast.Add):
                self._add("left term left out", node, right)
        elif isinstance(node.op, (ast.Mult, ast.BitAnd, ast.BitOr)):
            self._add("right factor left out", node, left)
            self._add("left factor left out", node, right)
        elif isinstance(node.op, (ast.Div, ast.Pow)):
            self._add("divisor or power left out", node, left)

    def _call(self, node: ast.Call) -> None:
        name = _called(node)
        if name in TURNED and TURNED[name] and not (name in ("min", "max") and not node.args and not node.keywords):
            start, end = self._span(node.func)
            self._put(f"{name} -> {TURNED[name]}", node, start + (end - start) - len(name), end, TURNED[name])
        if isinstance(node.func, ast.Attribute) and name in STRIPPED and not _module(node.func.value):
            self._add(f"{name} left out", node, self._raw(node.func.value))
        if name == "sqrt" and isinstance(node.func, ast.Attribute) and _module(node.func.value):
            self._add("sqrt -> 1", node, "1.0")
        if name == "gamma":
            self._add("gamma -> 0", node, "0.0")
        if name == "where" and len(node.args) == 3:
            self._add("first case only", node, self._raw(node.args[1]))
            self._add("second case only", node, self._raw(node.args[2]))

    def _checks(self, node: ast.AST) -> None:
        if _is_statement(node):
            self._add("statement left out", node, "pass", bare=True)
        elif isinstance(node, ast.If) and isinstance(node.body[-1], (ast.Raise, ast.Return, ast.Continue)):
            self._add("check left out", node.test, "False")
        elif isinstance(node, ast.BoolOp):
            word = " and " if isinstance(node.op, ast.And) else " or "
            for gone in node.values:
                kept = [f"({self._raw(one)})" for one in node.values if one is not gone]
                self._add(f"left out of{word.rstrip()}: {self._text(gone)}", node, word.join(kept))
        elif isinstance(node, ast.Compare) and TERMS not in self.kinds:
            self._limits(node)
        elif isinstance(node, ast.Call):
            for flag in node.keywords:
                if flag.arg in FLAGS and isinstance(flag.value, ast.Constant):
                    self._add(f"{flag.arg} turned", flag.value, str(not flag.value.value))
            if _called(node) == "project" and node.args:
                self._add("projection left out", node, self._raw(node.args[0]))

    def _limits(self, node: ast.Compare) -> None:
        """Each limit of a chain moved by one, and each part of a longer chain left out."""
        parts = [node.left, *node.comparators]
        for place, sign in enumerate(node.ops):
            if type(sign) in BESIDE:
                start, end = self._span(parts[place])[1], self._span(parts[place + 1])[0]
                self._put("limit moved", node, start, end, f" {BESIDE[type(sign)]} ")

    def _hashes(self, node: ast.AST) -> None:
        if isinstance(node, ast.Dict) and len(node.keys) > 1:
            for gone in range(len(node.keys)):
                rest = ast.Dict(node.keys[:gone] + node.keys[gone + 1 :], node.values[:gone] + node.values[gone + 1 :])
                self._add(f"entry left out: {self._text(node.values[gone])}", node, ast.unparse(rest))
        elif isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load) and len(node.elts) > 1:
            for gone in range(len(node.elts)):
                less = ast.Tuple(node.elts[:gone] + node.elts[gone + 1 :], ast.Load())
                self._add(f"entry left out: {self._text(node.elts[gone])}", node, ast.unparse(less))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add) and TERMS not in self.kinds:
            self._add("right term left out", node, self._raw(node.left))
            self._add("left term left out", node, self._raw(node.right))
        elif isinstance(node, ast.Call) and _called(node) == "sorted" and node.args:
            self._add("order left out", node, f"list({self._raw(node.args[0])})")

    def _add(self, rule: str, node: ast.AST, after: str, *, bare: bool = False, function: str = "") -> None:
        start, end = self._span(node)
        self._put(rule, node, start, end, after if bare else f"({after})", function)

    def _put(self, rule: str, node: ast.AST, start: int, end: int, after: str, function: str = "") -> None:
        line = int(getattr(node, "lineno", 0))
        self.edits.append(Edit(function or ".".join(self.names), rule, self._text(node), after, start, end, line))

    def _span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, (ast.expr, ast.stmt)) and node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def _raw(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self.source[start:end].decode()

    def _text(self, node: ast.AST) -> str:
        """The same on one line: it names the place, whatever the formatter does."""
        return " ".join(self._raw(node).split())


def _called(node: ast.Call) -> str:
    """f of f(...) and of a.b.f(...)."""
    func = node.func
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _module(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("torch", "math", "np", "numpy")


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes))


def _is_statement(node: ast.AST) -> bool:
    """f(...) or x[...] = ... for what it does."""
    called = isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await))
    return called or (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript))


def _is_message(node: ast.AST) -> bool:
    """text * (how many), or one text or another: what is shown, and nothing else."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        return any(_is_text(part) or isinstance(part, ast.JoinedStr) for part in (node.left, node.right))
    if isinstance(node, ast.IfExp):
        return any(_is_text(part) or isinstance(part, ast.JoinedStr) for part in (node.body, node.orelse))
    return False
