"""The command line as a whole: exit codes, errors without traceback, commands of packages."""

from __future__ import annotations

from pathlib import Path

from support.distributions import install, install_plugin, run_cli, run_python

COMMAND = """
    import click
    from plugrt.plugins import hookimpl

    @hookimpl
    def plugrt_add_commands(cli):
        @cli.command("greet")
        def greet():
            '''Say hello.'''
            click.echo("hello")
"""


def test_help_lists_commands_and_exit_codes() -> None:
    done = run_cli("--help")
    assert done.returncode == 0
    for fact in ("devices", "doctor", "Exit codes"):
        assert fact in done.stdout
    assert run_cli("-h").stdout == done.stdout


def test_version() -> None:
    assert run_cli("--version").stdout.startswith("plugrt, version ")


def test_wrong_usage_exits_with_2_and_suggests() -> None:
    done = run_cli("dvices")
    assert done.returncode == 2
    assert "Did you mean 'devices'?" in done.stderr
    assert run_cli("devices", "--nosuch").returncode == 2


def test_an_error_is_one_message_and_a_traceback_only_with_debug(tmp_path: Path) -> None:
    install_plugin(tmp_path, "a")
    done = run_cli("devices", folders=(tmp_path,), JAX_PLATFORMS="b")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith("error: JAX_PLATFORMS=b requests 'b'")
    assert "Traceback" not in done.stderr
    done = run_cli("--debug", "devices", folders=(tmp_path,), JAX_PLATFORMS="b")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_a_setting_that_cannot_be_read_is_one_message(tmp_path: Path) -> None:
    install_plugin(tmp_path, "a")
    done = run_cli("devices", folders=(tmp_path,), JAX_PLATFORMS="a", PLUGRT_TRACE_PLUGINS="what")
    assert done.returncode == 1
    assert "PLUGRT_TRACE_PLUGINS='what'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_package_adds_a_command(tmp_path: Path) -> None:
    install(tmp_path, "d", {"plugrt.cli": {"d": "d_commands"}}, {"d_commands": COMMAND})
    done = run_cli("greet", folders=(tmp_path,))
    assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
    assert "Say hello." in run_cli("--help", folders=(tmp_path,)).stdout


def test_a_package_whose_commands_fail_is_named_and_costs_nothing(tmp_path: Path) -> None:
    install(tmp_path, "d", {"plugrt.cli": {"d": "d_commands"}}, {"d_commands": COMMAND})
    install(tmp_path, "e", {"plugrt.cli": {"e": "e_commands"}}, {"e_commands": "raise SystemExit"})
    install_plugin(tmp_path, "a")
    done = run_cli("greet", folders=(tmp_path,))
    assert (done.returncode, done.stdout) == (0, "hello\n")
    assert done.stderr == (
        "the commands of e 1.0 are left out: SystemExit; PLUGRT_PLUGINS_BLOCK=e silences this\n"
    )
    done = run_cli("devices", folders=(tmp_path,), JAX_PLATFORMS="a")
    assert done.stderr == "", "for a command of our own no package is asked"


def test_python_m_plugrt_is_the_same(tmp_path: Path) -> None:
    install_plugin(tmp_path, "a")
    code = """
        import runpy, sys
        sys.argv = ["plugrt", "devices", "--json"]
        runpy.run_module("plugrt", run_name="__main__")
    """
    done = run_python(code, tmp_path, JAX_PLATFORMS="a")
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout == run_cli("devices", "--json", folders=(tmp_path,), JAX_PLATFORMS="a").stdout
    )
