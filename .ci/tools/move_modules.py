"""Moves the modules of a package by a table, and rewrites the paths of their imports.

The table is the block of code of a decision: `folder: modules` keeps the names of modules,
`module = module` gives another one, `name.*` stands for all modules of a package. It is a tool for
one commit that holds nothing else.

    python .ci/tools/move_modules.py TABLE PACKAGE
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

_TEXTS = (".py", ".md", ".toml", ".json", ".yaml", ".yml", ".txt", ".ts", ".tsx", ".sh", ".mjs")


def list_modules(package: str) -> dict[str, Path]:
    """Returns the files of a package's modules; packages have the name of their folder."""
    modules = {}
    for path in Path(package).rglob("*.py"):
        name = ".".join(path.with_suffix("").parts)
        modules[name.removesuffix(".__init__")] = path
    return modules


def read_table(text: str, package: str, modules: dict[str, Path]) -> dict[str, str]:
    """Returns the new names of modules by their old ones."""
    moves = {}
    for line in re.search(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[1].splitlines():
        if "=" in line:
            new, old = (part.strip().removesuffix(".__init__") for part in line.split("="))
            moves[f"{package}.{old}"] = f"{package}.{new}"
        elif line.strip():
            folder, olds = line.split(":")
            for old in olds.split():
                for module in modules:
                    parent, _, name = module.rpartition(".")
                    if old.endswith(".*") and f"{package}.{old[:-2]}" == parent:
                        moves[module] = f"{package}.{folder}.{name}"
                    elif old.removesuffix(".*").removesuffix(".__init__") == module.removeprefix(
                        f"{package}."
                    ):
                        is_package = old.endswith((".*", ".__init__"))
                        new = f"{package}.{folder}"
                        moves[module] = new if is_package else f"{new}.{name}"
    return moves


def rewrite_imports(text: str, moves: dict[str, str]) -> str:
    """Returns a module with the new paths in its imports."""
    lines = text.splitlines(keepends=True)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)]
    for node in sorted(nodes, key=lambda node: -node.lineno):
        if node.level or node.module is None:
            continue
        by_source: dict[str, list[str]] = {}
        for alias in node.names:
            module = f"{node.module}.{alias.name}"
            if module in moves:
                parent, _, name = moves[module].rpartition(".")
                shown = alias.asname or alias.name
            else:
                parent, name = moves.get(node.module, node.module), alias.name
                shown = alias.asname or name
            written = name if shown == name and not alias.asname else f"{name} as {shown}"
            by_source.setdefault(parent, []).append(written)
        if list(by_source) == [node.module]:
            continue
        indent = " " * node.col_offset
        new = "".join(
            f"{indent}from {source} import ({', '.join(names)})\n"
            if len(names) > 1
            else f"{indent}from {source} import {names[0]}\n"
            for source, names in by_source.items()
        )
        tail = lines[node.end_lineno - 1].encode()[node.end_col_offset :].decode()
        if "#" in tail:
            new = new.rstrip("\n") + tail
        lines[node.lineno - 1 : node.end_lineno] = [new]
    return "".join(lines)


def rewrite_names(text: str, moves: dict[str, str], files: dict[str, str]) -> str:
    """Returns a text with the new dotted names and paths of modules."""
    dotted = re.compile(rf"(?<![\w./-])(?:{_join(moves)})(?![\w/-])")
    text = dotted.sub(lambda match: moves[match[0]], text)
    paths = re.compile(rf"(?<![\w/.-])(?:{_join(files)})(?!\w)")
    return paths.sub(lambda match: files[match[0]], text)


def _join(names: dict[str, str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


def main() -> None:
    """Moves the files, then rewrites all tracked texts."""
    table, package = Path(sys.argv[1]), sys.argv[2]
    modules = list_modules(package)
    moves = read_table(table.read_text(), package, modules)
    unknown = [old for old in moves if old not in modules]
    assert not unknown, f"no such modules: {unknown}"
    assert len(set(moves.values())) == len(moves), "two modules have one new name"
    packages = {new.rpartition(".")[0] for new in moves.values()}
    files = {}
    for old, new in moves.items():
        path = Path(*new.split("."))
        is_package = new in packages
        files[str(modules[old])] = str(
            path / "__init__.py" if is_package else path.with_suffix(".py")
        )
    for old, new in files.items():
        assert old != new, old
        Path(new).parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "mv", old, new], check=True)
    for new in sorted(packages):
        parts = new.split(".")
        for depth in range(2, len(parts) + 1):
            file = Path(*parts[:depth], "__init__.py")
            if not file.exists():
                file.write_text(f'"""{parts[depth - 1].capitalize()}."""\n')
    tracked = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True)
    for name in tracked.stdout.split("\n"):
        path = Path(name)
        if (
            (path.suffix not in _TEXTS and path.name not in {"Makefile", "Dockerfile"})
            or not path.is_file()
            or path == table
        ):
            continue
        text = path.read_text()
        new = rewrite_imports(text, moves) if path.suffix == ".py" else text
        new = rewrite_names(new, moves, files)
        if new != text:
            path.write_text(new)


if __name__ == "__main__":
    main()
