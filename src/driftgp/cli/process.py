"""How a process of the command line uses JAX. A library must not decide this for its users, a command may."""

import os
from pathlib import Path


def prepare_jax() -> None:
    """Set JAX up for many small computations, and keep what it compiles; to be called before it computes anything.

    One operation of a step takes less time than handing it to another thread: so computations run where they are
    called, and by one thread (XLA takes the size of its pool from NPROC). Many series are the work of many processes.
    A pool or a cache folder that the user has chosen (NPROC, JAX_COMPILATION_CACHE_DIR) stays.
    """
    import jax

    os.environ.setdefault("NPROC", "1")
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    folder = None if "JAX_COMPILATION_CACHE_DIR" in os.environ else _cache_folder()
    if folder is not None:
        jax.config.update("jax_compilation_cache_dir", str(folder))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def _cache_folder() -> Path | None:
    """Folder of this user for compiled programs, or None where there can be none."""
    from platformdirs import user_cache_path

    folder = user_cache_path("driftgp", appauthor=False) / "jax"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:  # a read-only home: everything works, and compiles anew each time
        return None
    return folder
