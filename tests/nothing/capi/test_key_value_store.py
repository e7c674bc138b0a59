"""Key-value callbacks, called by a C library while its client is created."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugrt.capi import create_client
from plugrt.errors import DeadlineExceeded, NotFound, Unknown
from support.clib import needs_cc, tiny_library

pytestmark = needs_cc

ASKING = r"""
static char seen[100];
static PJRT_Error* make_error(int code, const char* message, size_t size) {
  char* copy = malloc(size + 1); memcpy(copy, message, size); copy[size] = 0;
  return fail(code, copy);
}
static PJRT_Error* asking(struct PJRT_Client_Create_Args* a) {
  PJRT_CallbackError callback_error = make_error;
  if (!a->kv_put_callback) return fail(9, "no store");
  struct PJRT_KeyValuePutCallback_Args put = {sizeof put, 0, "keyXX", 3, "va\0lueXX", 6,
    &callback_error, a->kv_put_user_arg};
  PJRT_Error* error = a->kv_put_callback(&put);
  if (error) return error;
  struct PJRT_KeyValueGetCallback_Args get = {sizeof get, 0, KEY, strlen(KEY), 250,
    &callback_error, a->kv_get_user_arg};
  error = a->kv_get_callback(&get);
  if (error) return error;
  memcpy(seen, get.value, get.value_size);
  if (get.value_size != 6 || memcmp(seen, "va\0lue", 6)) return fail(13, "wrong value");
  get.value_deleter_callback(get.value);
  struct PJRT_KeyValueTryGetCallback_Args try_get = {sizeof try_get, 0, "absent", 6,
    &callback_error, a->kv_try_get_user_arg};
  error = a->kv_try_get_callback(&try_get);
  if (!error) return fail(13, "the absent key was found");
  struct error* e = (struct error*)error;
  if (e->code != 5) return fail(13, "wrong code for an absent key");
  live_errors--; free(e);
  return client_create(a);
}
"""


class Store:
    """A store in a dictionary that records its requests."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.asked: list[tuple[str, int]] = []

    def get(self, key: str, timeout_ms: int) -> bytes:
        self.asked.append((key, timeout_ms))
        if key == "explode":
            raise ZeroDivisionError("bang")
        if key not in self.values:
            raise TimeoutError("too late")
        return self.values[key]

    def try_get(self, key: str) -> bytes | None:
        return self.values.get(key)

    def put(self, key: str, value: bytes) -> None:
        self.values[key] = value


def library(folder: Path, key: str) -> Path:
    return tiny_library(folder, "api.Client_Create=asking;", ASKING, f'-DKEY="{key}"')


def test_put_get_and_try_get(tmp_path: Path) -> None:
    store = Store()
    client = create_client(library(tmp_path, "key"), {}, name="tiny", kv_store=store)
    assert store.values == {"key": b"va\0lue"}
    assert store.asked == [("key", 250)]
    client.close()


def test_a_missing_value_raises_deadline_exceeded(tmp_path: Path) -> None:
    with pytest.raises(DeadlineExceeded, match="no value came for the key 'other': too late"):
        create_client(library(tmp_path, "other"), {}, name="tiny", kv_store=Store())


def test_store_that_raises(tmp_path: Path) -> None:
    with pytest.raises(Unknown, match="ZeroDivisionError: bang"):
        create_client(library(tmp_path, "explode"), {}, name="tiny", kv_store=Store())


def test_store_that_reports_a_pjrt_error(tmp_path: Path) -> None:
    class Empty(Store):
        def put(self, key: str, value: bytes) -> None:
            raise NotFound(f"no room for {key}")

    with pytest.raises(NotFound, match="no room for key"):
        create_client(library(tmp_path, "key"), {}, name="tiny", kv_store=Empty())
