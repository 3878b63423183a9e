"""The error tree, by who can act on it; every error a client can be told has a stable `code`.

AskError
  BadQuery             the client can fix it                       400
  UnknownSite          ... a site that is not there                404
  NotFound             ... a document or memory that is not there  404
  Forbidden            the caller may not do this                  403
  Unauthorized         a credential is needed                      401
  TooMany              ... too often                               429
  ModelError           the language model failed                   502
    ModelTimeout       ... in time                                 504
    ModelRefused       ... the key or the model name is wrong      502
    ModelBusy          ... too many requests, retries used up      503
    BadModelReply      ... to keep to the schema                   502
  StoreError           the vector store or the database failed     503
    StoreMismatch      ... it was made with other legs or models   503
    FolderInUse        ... another process has the data folder     503
  MemoryFailed         a memory hook failed in a way of its own    502
  ConfigError          settings, prompt files: the operator's      500
  LoadError            a source that cannot be read as a whole     422
"""

from __future__ import annotations


class AskError(Exception):
    """Base of all errors with a message fit for the person who can act on it (never a secret in it)."""

    code = "internal"
    status = 500
    retryable = False

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.field = field


class BadQuery(AskError):
    code = "bad_request"
    status = 400


class UnknownSite(BadQuery):
    code = "site_unknown"
    status = 404


class NotFound(AskError):
    code = "not_found"
    status = 404


class Forbidden(AskError):
    code = "forbidden"
    status = 403


class Unauthorized(AskError):
    code = "unauthorized"
    status = 401


class TooMany(AskError):
    code = "too_many"
    status = 429


class ModelError(AskError):
    code = "model_failed"
    status = 502
    retryable = True
    # Whether who asked may try again now: the reply broke off, and there were retries left for that.
    broke_off = False


class ModelTimeout(ModelError):
    code = "model_timeout"
    status = 504


class ModelRefused(ModelError):
    code = "model_refused"
    retryable = False


class ModelBusy(ModelError):
    code = "model_busy"
    status = 503


class BadModelReply(ModelError):
    code = "model_reply"


class StoreError(AskError):
    code = "store_failed"
    status = 503
    retryable = True


class StoreMismatch(StoreError):
    code = "store_mismatch"
    retryable = False


class MemoryFailed(AskError):
    code = "memory_failed"
    status = 502
    retryable = True


class ConfigError(AskError):
    code = "config"


class LoadError(AskError):
    code = "load_failed"
    status = 422
