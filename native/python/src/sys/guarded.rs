//! The state of an object that several threads of Python may use at once.
//!
//! This crate must have no other mutex.  A thread that waits for a mutex while it is
//! attached to Python never gets it where the holder waits for Python.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use super::errors::in_use;

/// A mutex whose `lock` is safe on attached and on detached threads.
#[derive(Debug, Default)]
pub(crate) struct Guarded<T>(Mutex<T>);

impl<T> Guarded<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Lock it, waiting detached from Python while another thread holds the lock.
    ///
    /// A panic of an earlier holder was raised in Python; its half of a change stays.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        match self.0.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => Python::attach(|py| {
                let locked = self.0.lock_py_attached(py);
                locked.unwrap_or_else(PoisonError::into_inner)
            }),
        }
    }

    /// Lock it; an exception if another call holds the lock.
    pub(crate) fn try_lock(&self) -> PyResult<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(in_use()),
        }
    }

    /// Return the value, also after a panic of a holder.
    pub(crate) fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
