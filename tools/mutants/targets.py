"""Where errors are planted, and the names whose tests should notice: one table, by names and not by files."""

from __future__ import annotations

from dataclasses import dataclass

from tools.mutants.rules import CHECKS, HASHES, TERMS

BOUND, READER, CACHE = frozenset({TERMS}), frozenset({CHECKS}), frozenset({CHECKS, HASHES})


@dataclass(frozen=True)
class Target:
    """The module that defines ``subject``; tests that use one of ``names`` should notice.

    files : names of test files, for what only a command or a whole workflow reaches
    only : functions and methods (or classes) to plant in, () for all of the module
    search : functions that choose where a bound is tried and are part of no proof: nothing is planted there
    """

    subject: str
    kinds: frozenset[str]
    names: tuple[str, ...]
    files: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    search: tuple[str, ...] = ()


FETCHED = (
    *("fetch", "load_images", "cached", "checksum", "_read", "_ArraysOnly", "_member", "_idx", "_pickled"),
    "_run_download",
)
CHECKED = (
    *("checked", "check_fields", "raise_if_memory", "dense", "plain_tensor", "answer", "check_module", "_any_of"),
    *("_real", "_whole", "_flag", "_path", "_items", "_instance", "_module", "_like"),
)
FOREIGN = ("certified", "as_module", "label_codes", "folded")
HEADS = ("test_robustness_mixin", "test_classifier_training", "test_robustness_mixin_replaced")
PROVABLE = tuple(f"RobustnessMixin.{name}" for name in ("certify", "_unproven", "robust_score", "_arithmetic"))
TARGETS = (
    Target("ScaledPoints", BOUND, ("ScaledNet", "root_lipschitz_radius", "Arithmetic", "EXECUTED")),
    Target("arithmetic_of", BOUND | READER, ("Arithmetic", "EXECUTED")),
    Target(
        "root_lipschitz_radius",
        BOUND,
        ("root_lipschitz_radius", "LipschitzConstants", "steepest_falls"),
        search=("_typical",),
    ),
    Target("linear_radius", BOUND, ("linear_radius", "certified_radius"), search=("_first",)),
    Target("quadratic_radius", BOUND, ("quadratic_radius",), search=("_search", "QuadraticRows.tangent")),
    Target("krylov_radius", BOUND, ("krylov_radius", "krylov_radius_against"), search=("_search",)),
    Target("Relaxation", BOUND, ("Relaxation", "solve"), search=("overstated", "_NewtonSearch.advance", "solve")),
    Target("Ball", BOUND, ("Ball", "certify", "leader_weights"), search=("_steepness",)),
    Target(
        "leader_weights",
        BOUND,
        ("certify", "leader_weights"),
        search=("_above", "_rank", "_batches"),
    ),
    Target("centre_radius", BOUND | READER, ("centre_radius", "average_radius")),
    Target("least_cost", BOUND, ("centre_radius",)),
    Target("ReducedNet", BOUND, ("ReducedNet",)),
    Target("bracket", BOUND | READER, ("bracket", "check_bounds"), search=("DoneReporter.__call__",)),
    Target("to_hyperplane", BOUND, ("to_hyperplane", "linear_minimiser")),
    Target(
        "CountedScore",
        BOUND | READER,
        ("CountedScore",),
        only=("AttackTask.within", "AttackTask.project", "AttackTask.inside", "AttackTask.remember"),
    ),
    Target("check_points", READER, ("check_points",)),
    Target("require", READER, ("require",)),
    Target("load_reference", READER, ("load_reference", "KINDS", "classes_from_json")),
    Target("PolyReLUClassifier", READER, ("classes_from_json",), only=("PolyReLUClassifier.load",)),
    Target("open_table", READER, ("read_table", "open_table"), files=("test_read",)),
    Target("label_file", READER, ("read_table", "open_table"), files=("test_read",)),
    Target("lay_out", READER, ("read_table", "open_table"), files=("test_read",)),
    Target("csv_tables", READER, ("read_table", "open_table"), files=("test_read",)),
    Target("as_clusters", READER, ("as_clusters", "as_labels"), only=("as_clusters", "as_labels", "class_numbers")),
    Target(
        "read_dataset_file",
        READER,
        ("read_dataset_file", "as_label_numbers"),
        files=("test_read",),
        only=("read_dataset_file", "as_label_numbers"),
    ),
    Target("fetch", CACHE, ("fetch",), only=FETCHED),
    Target("read_part", CACHE, ("read_part", "write_part")),
    Target("read_run_record", READER, ("read_run_record",), only=("read_run_record", "read_trajectory")),
    Target("Trajectory", READER, ("read_trajectory",), only=("Trajectory.load",)),
    Target("identity_of", CACHE, ("identity_of",), only=("identity_of", "_bytes")),
    Target(
        "code_identity",
        CACHE,
        ("code_identity",),
        files=("test_identity",),
        only=("code_identity", "modules_of", "_defining", "_read", "_tree", "_executed"),
    ),
    Target("Folder", CACHE, ("Folder",)),
    Target("key_of", CACHE, ("key_of", "digest", "encode")),
    Target("sweepable", CACHE, ("source_version",)),
    Target("Guard", READER | CACHE, ("application", "Guard", "is_local")),
    Target("Parameter", READER, ("PARAMETERS",)),
    Target("Question", READER, (), files=("test_server",), only=("Question.from_json", "_two")),
    Target(
        "parse_recipe",
        READER,
        ("parse_recipe",),
        files=("test_read", "test_recipe"),
        search=("stream", "orthonormal_rows"),
    ),
    Target("check_call", READER, (), files=("test_sweep",), only=("Sweep", "_parse", "_once", "_sweep_of")),
    Target("read_npz", READER, ("read_npz", "map_npy")),
    Target("check_fields", READER, ("checked", "check_fields"), only=CHECKED),
    Target("CertifiedRows", CACHE, ("CertifiedRows",)),
    Target("altered", READER, ("altered",), files=("test_integrity",)),
    Target("margin_of", BOUND, ("margin_of",), only=("margin_of",)),
    Target(
        "branching_bounds",
        BOUND,
        ("bracket",),
        files=("test_strategies", "test_bracket_edges", "test_readout"),
        search=("general_attack", "boundary_attack", "_blurred", "_Branching.apart"),
    ),
    Target("readout_bounds", BOUND, (), files=("test_readout", "test_readout_terms")),
    Target(
        "proven_at_radius",
        BOUND | READER,
        ("bounds_at_radius", "proven_at_radius"),
        files=HEADS,
        search=("with_neurons",),
    ),
    Target("RobustnessMixin", BOUND | READER, (), files=(*HEADS, "test_decision", "test_integrity"), only=PROVABLE),
    Target("as_module", BOUND | READER, FOREIGN, search=("_joined", "error_summary")),
    Target("folded", BOUND, FOREIGN),
    Target("layers_of", BOUND | READER, FOREIGN, search=("_public_gamma", "_confirmed.kernel")),
)
