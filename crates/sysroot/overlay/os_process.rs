//! Descriptors of processes' streams, as `os::unix::process` has them.

use crate::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use crate::process::{ChildStderr, ChildStdin, ChildStdout, Stdio};
use crate::sys::fd::FileDesc;
use crate::sys::process::{self as imp, ChildPipe};
use crate::sys::{AsInner, FromInner, IntoInner};

#[stable(feature = "process_extensions", since = "1.2.0")]
impl FromRawFd for Stdio {
    #[inline]
    unsafe fn from_raw_fd(fd: RawFd) -> Stdio {
        // SAFETY: the caller's promise.
        Stdio::from_inner(imp::Stdio::Fd(unsafe { FileDesc::from_raw_fd(fd) }))
    }
}

#[stable(feature = "io_safety", since = "1.63.0")]
impl From<OwnedFd> for Stdio {
    #[inline]
    fn from(fd: OwnedFd) -> Stdio {
        Stdio::from_inner(imp::Stdio::Fd(FileDesc::from_inner(fd)))
    }
}

macro_rules! stream {
    ($($name:ident)*) => {$(
        #[stable(feature = "process_extensions", since = "1.2.0")]
        impl AsRawFd for $name {
            #[inline]
            fn as_raw_fd(&self) -> RawFd {
                self.as_inner().as_raw_fd()
            }
        }

        #[stable(feature = "into_raw_os", since = "1.4.0")]
        impl IntoRawFd for $name {
            #[inline]
            fn into_raw_fd(self) -> RawFd {
                self.into_inner().into_raw_fd()
            }
        }

        #[stable(feature = "io_safety", since = "1.63.0")]
        impl AsFd for $name {
            #[inline]
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.as_inner().as_fd()
            }
        }

        #[stable(feature = "io_safety", since = "1.63.0")]
        impl From<$name> for OwnedFd {
            #[inline]
            fn from(stream: $name) -> OwnedFd {
                stream.into_inner().into_inner()
            }
        }

        #[stable(feature = "child_stream_from_fd", since = "1.74.0")]
        impl From<OwnedFd> for $name {
            #[inline]
            fn from(fd: OwnedFd) -> $name {
                $name::from_inner(ChildPipe::from_inner(fd))
            }
        }
    )*};
}

stream!(ChildStdin ChildStdout ChildStderr);
