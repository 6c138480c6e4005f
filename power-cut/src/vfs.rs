//! A SQLite VFS (the layer that accesses files). It forwards every call to SQLite's own
//! VFS and records the changes.
//!
//! A file of this VFS is a [`ShimFile`], followed by the file of SQLite's own VFS.
//! SQLite makes one allocation for both.

use std::{
    ffi::{CStr, OsStr, c_char, c_int, c_void},
    os::unix::ffi::OsStrExt as _,
    path::Path,
    ptr,
    sync::{
        Arc, Once,
        atomic::{AtomicBool, AtomicPtr, Ordering},
    },
};

use rusqlite::ffi::{
    SQLITE_IOERR, SQLITE_OK, SQLITE_OPEN_CREATE, SQLITE_OPEN_MAIN_JOURNAL,
    SQLITE_OPEN_SUPER_JOURNAL, SQLITE_OPEN_WAL, sqlite3_file, sqlite3_filename,
    sqlite3_int64, sqlite3_io_methods, sqlite3_vfs, sqlite3_vfs_find,
    sqlite3_vfs_register,
};

use crate::{Disk, Event};

/// SQLite's own VFS, to which calls are forwarded. It is set before this VFS is
/// registered.
static INNER: AtomicPtr<sqlite3_vfs> = AtomicPtr::new(ptr::null_mut());

#[repr(C)]
struct ShimFile {
    base: sqlite3_file,
    /// The record of an open file. Null for a file in a folder that is not recorded.
    watched: *mut Watched,
}

/// An open file in a folder that is recorded.
struct Watched {
    disk: Arc<Disk>,
    node: u64,
    /// Whether the next sync of the file also syncs its folder.
    syncs_folder: AtomicBool,
}

/// Makes this VFS the default VFS of the process. Only the first call has an effect.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: a null name asks for the default VFS, which SQLite keeps for the
        // lifetime of the process. The copy is leaked, as SQLite requires of a
        // registered VFS. The functions that are kept in the copy do not depend on
        // which of the two VFS they get.
        unsafe {
            let inner = sqlite3_vfs_find(ptr::null());
            assert!(!inner.is_null(), "SQLite has a default VFS");
            INNER.store(inner, Ordering::SeqCst);
            let mut shim = *inner;
            shim.zName = c"relq-power-cut".as_ptr();
            shim.pNext = ptr::null_mut();
            let own = c_int::try_from(size_of::<ShimFile>()).expect("it is small");
            shim.szOsFile = own + (*inner).szOsFile;
            shim.xOpen = Some(open);
            shim.xDelete = Some(delete);
            let shim = Box::into_raw(Box::new(shim));
            assert_eq!(sqlite3_vfs_register(shim, 1), SQLITE_OK);
        }
    });
}

fn checked(code: c_int) -> Result<(), c_int> {
    if code == SQLITE_OK { Ok(()) } else { Err(code) }
}

fn code(result: Result<(), c_int>) -> c_int {
    result.err().unwrap_or(SQLITE_OK)
}

/// # Safety
/// `name` is null or a C string.
unsafe fn disk_of(name: *const c_char) -> Option<(Arc<Disk>, String)> {
    if name.is_null() {
        return None;
    }
    // SAFETY: the caller promises that the pointer is a C string.
    let name = unsafe { CStr::from_ptr(name) };
    Disk::of(Path::new(OsStr::from_bytes(name.to_bytes())))
}

/// # Safety
/// `file` is a file of this VFS.
unsafe fn inner_of(file: *mut sqlite3_file) -> *mut sqlite3_file {
    // SAFETY: `szOsFile` makes SQLite allocate the inner file behind the `ShimFile`,
    // whose size is a multiple of the alignment of pointers.
    unsafe { file.cast::<ShimFile>().add(1).cast() }
}

/// # Safety
/// `file` is an open file of this VFS.
unsafe fn watched_of<'a>(file: *mut sqlite3_file) -> Option<&'a Watched> {
    // SAFETY: `open` sets the pointer, and only `close` frees it.
    unsafe { (*file.cast::<ShimFile>()).watched.as_ref() }
}

unsafe extern "C" fn open(
    _: *mut sqlite3_vfs,
    name: sqlite3_filename,
    file: *mut sqlite3_file,
    flags: c_int,
    out_flags: *mut c_int,
) -> c_int {
    let shim = file.cast::<ShimFile>();
    let open_inner = || {
        let vfs = INNER.load(Ordering::SeqCst);
        // SAFETY: all arguments come from SQLite, and the file is the inner one. The
        // file has no methods until the end of `open`, so SQLite does not close it if
        // `open` fails.
        unsafe {
            (*shim).base.pMethods = ptr::null();
            (*shim).watched = ptr::null_mut();
            let open = (*vfs).xOpen.expect("every VFS opens files");
            checked(open(vfs, name, inner_of(file), flags, out_flags))
        }
    };
    // SAFETY: SQLite passes null or a C string.
    let opened = match unsafe { disk_of(name) } {
        None => open_inner().map(|()| ptr::null_mut()),
        Some((disk, name)) => disk.open(name, open_inner).map(|node| {
            let syncs_folder = AtomicBool::new(is_new_journal(flags));
            Box::into_raw(Box::new(Watched { disk, node, syncs_folder }))
        }),
    };
    match opened {
        Ok(watched) => {
            // SAFETY: `shim` is the allocation that SQLite made for this file.
            unsafe {
                (*shim).watched = watched;
                (*shim).base.pMethods = &METHODS;
            }
            SQLITE_OK
        }
        Err(code) => code,
    }
}

/// Whether the first sync of a new file with these flags also syncs its folder, as
/// SQLite's own VFS for Unix does.
fn is_new_journal(flags: c_int) -> bool {
    let journals =
        SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL | SQLITE_OPEN_WAL;
    flags & SQLITE_OPEN_CREATE != 0 && flags & journals != 0
}

unsafe extern "C" fn delete(
    _: *mut sqlite3_vfs,
    name: *const c_char,
    syncs_folder: c_int,
) -> c_int {
    let delete_inner = || {
        let vfs = INNER.load(Ordering::SeqCst);
        // SAFETY: the arguments come from SQLite.
        unsafe {
            let delete = (*vfs).xDelete.expect("every VFS deletes files");
            checked(delete(vfs, name, syncs_folder))
        }
    };
    // SAFETY: SQLite passes a C string.
    let Some((disk, name)) = (unsafe { disk_of(name) }) else {
        return code(delete_inner());
    };
    let deleted = disk.change(delete_inner, || Event::Delete { name });
    if syncs_folder == 0 || deleted.is_err() {
        return code(deleted);
    }
    code(disk.change(|| Ok(()), || Event::SyncFolder))
}

/// Calls a method of the inner file, which belongs to SQLite's own VFS.
macro_rules! inner {
    ($file:ident.$method:ident($($argument:expr),*)) => {{
        // SAFETY: `open` has opened the inner file, so its methods are set. The
        // arguments come from SQLite.
        unsafe {
            let inner = inner_of($file);
            match (*(*inner).pMethods).$method {
                Some(method) => method(inner, $($argument),*),
                None => unreachable!(concat!(stringify!($method), " is missing")),
            }
        }
    }};
}

/// Defines methods that only call the same method of the inner file.
macro_rules! forward {
    ($($name:ident = $method:ident($($argument:ident: $kind:ty),*) -> $result:ty;)*) => {
        $(unsafe extern "C" fn $name(file: *mut sqlite3_file, $($argument: $kind),*) -> $result {
            inner!(file.$method($($argument),*))
        })*
    };
}

forward! {
    read = xRead(to: *mut c_void, length: c_int, offset: sqlite3_int64) -> c_int;
    file_size = xFileSize(size: *mut sqlite3_int64) -> c_int;
    lock = xLock(level: c_int) -> c_int;
    unlock = xUnlock(level: c_int) -> c_int;
    check_reserved_lock = xCheckReservedLock(result: *mut c_int) -> c_int;
    file_control = xFileControl(operation: c_int, argument: *mut c_void) -> c_int;
    sector_size = xSectorSize() -> c_int;
    device_characteristics = xDeviceCharacteristics() -> c_int;
    shm_map = xShmMap(page: c_int, size: c_int, extend: c_int, at: *mut *mut c_void) -> c_int;
    shm_lock = xShmLock(offset: c_int, count: c_int, flags: c_int) -> c_int;
    shm_unmap = xShmUnmap(delete: c_int) -> c_int;
    fetch = xFetch(offset: sqlite3_int64, length: c_int, at: *mut *mut c_void) -> c_int;
    unfetch = xUnfetch(offset: sqlite3_int64, at: *mut c_void) -> c_int;
}

static METHODS: sqlite3_io_methods = sqlite3_io_methods {
    iVersion: 3,
    xClose: Some(close),
    xRead: Some(read),
    xWrite: Some(write),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved_lock),
    xFileControl: Some(file_control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(device_characteristics),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    xFetch: Some(fetch),
    xUnfetch: Some(unfetch),
};

unsafe extern "C" fn shm_barrier(file: *mut sqlite3_file) {
    inner!(file.xShmBarrier());
}

unsafe extern "C" fn close(file: *mut sqlite3_file) -> c_int {
    let closed = inner!(file.xClose());
    // SAFETY: SQLite calls no method of the file after this one. `open` made the
    // pointer with `Box::into_raw`, and it is set to null once it is freed.
    unsafe {
        let shim = file.cast::<ShimFile>();
        let watched = std::mem::replace(&mut (*shim).watched, ptr::null_mut());
        if !watched.is_null() {
            drop(Box::from_raw(watched));
        }
        (*shim).base.pMethods = ptr::null();
    }
    closed
}

unsafe extern "C" fn write(
    file: *mut sqlite3_file,
    from: *const c_void,
    length: c_int,
    offset: sqlite3_int64,
) -> c_int {
    let write_inner = || checked(inner!(file.xWrite(from, length, offset)));
    // SAFETY: SQLite calls this only while the file is open.
    let Some(watched) = (unsafe { watched_of(file) }) else {
        return code(write_inner());
    };
    let (Ok(length), Ok(offset)) = (usize::try_from(length), usize::try_from(offset))
    else {
        return SQLITE_IOERR;
    };
    // SAFETY: SQLite passes a buffer of that length, which lives during this call.
    let bytes = unsafe { std::slice::from_raw_parts(from.cast::<u8>(), length) };
    let event = || Event::Write { node: watched.node, offset, bytes: bytes.to_vec() };
    code(watched.disk.change(write_inner, event))
}

unsafe extern "C" fn truncate(file: *mut sqlite3_file, length: sqlite3_int64) -> c_int {
    let truncate_inner = || checked(inner!(file.xTruncate(length)));
    // SAFETY: SQLite calls this only while the file is open.
    let Some(watched) = (unsafe { watched_of(file) }) else {
        return code(truncate_inner());
    };
    let Ok(length) = usize::try_from(length) else { return SQLITE_IOERR };
    let event = || Event::Truncate { node: watched.node, length };
    code(watched.disk.change(truncate_inner, event))
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    // SAFETY: SQLite calls this only while the file is open.
    let Some(watched) = (unsafe { watched_of(file) }) else {
        return inner!(file.xSync(flags));
    };
    let event = || Event::Sync { node: watched.node };
    let synced = watched.disk.change(|| Ok(()), event);
    if synced.is_err() || !watched.syncs_folder.swap(false, Ordering::SeqCst) {
        return code(synced);
    }
    code(watched.disk.change(|| Ok(()), || Event::SyncFolder))
}
