//! The cryptography under TLS.

use rustls::crypto::{CryptoProvider, ring};

/// Takes ring's, unless the program has chosen another: without a choice there is no
/// TLS connection, and with two that are compiled in none is chosen by itself.
pub(crate) fn choose_cryptography() {
    if CryptoProvider::get_default().is_none() {
        // Somebody else may have chosen at this very moment, which is as good.
        drop(ring::default_provider().install_default());
    }
}
