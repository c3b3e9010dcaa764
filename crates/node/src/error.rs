//! What can go wrong while a node starts.

use std::path::PathBuf;

/// A reason why a node could not start. Every text names what, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {action} {}: {source} [LC0101]", .path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },

    #[error("{}: {message}; correct the file or move it away to get the default one [LC0102]", .path.display())]
    Config { path: PathBuf, message: String },

    #[error("the environment variable {name} cannot be understood: {message} [LC0102]")]
    Environment { name: String, message: String },

    /// 07 §3.1; the text up to the code is the reference's.
    #[error(
        "cannot take lock on database; spacetime.pid already exists (owned by pid {pid}) [LC0103]"
    )]
    DataDirectoryLocked { pid: String },

    #[error(
        "the data directory {} belongs to edition {found:?}, this server opens only {expected:?}; \
         choose another --data-dir [LC0104]", .path.display()
    )]
    WrongEdition {
        path: PathBuf,
        found: String,
        expected: &'static str,
    },

    #[error(
        "the data directory {} was written by version {found}, this server is version {running}; \
         run a server of the same major version that is not older [LC0104]", .path.display()
    )]
    WrongVersion {
        path: PathBuf,
        found: String,
        running: &'static str,
    },

    /// 06 §3.6.
    #[error("Unable to read public key for JWT token verification: {} ({reason}) [LC0105]", .path.display())]
    PublicKey { path: PathBuf, reason: String },

    /// 06 §3.6.
    #[error("Unable to read private key for JWT token signing: {} ({reason}) [LC0105]", .path.display())]
    PrivateKey { path: PathBuf, reason: String },

    #[error("the public key {} does not belong to the private key {} [LC0105]", .public.display(), .private.display())]
    KeyPairMismatch { public: PathBuf, private: PathBuf },

    #[error(
        "no key pair for tokens: pass --jwt-pub-key-path and --jwt-priv-key-path or --jwt-key-dir, \
         or set [certificate-authority] in config.toml [LC0105]"
    )]
    NoKeyPair,

    #[error(
        "the data directory {} belongs to user {owner}, who could change everything in it, and this server runs as user {me}; \
         run it as that user, or `chown -R {me}` the directory [LC0137]", .path.display()
    )]
    DirectoryOwner { path: PathBuf, owner: u32, me: u32 },

    #[error(
        "every user of this machine may write to the data directory {} (mode {mode:o}), and it is not this user's to change; \
         `chmod 700` it [LC0138]", .path.display()
    )]
    DirectoryMode { path: PathBuf, mode: u32 },

    #[error(
        "others may read the private key {} (mode {mode:o}), and with it a reader can take any identity; \
         `chmod 600` it, or 640 if it is not this user's [LC0139]", .path.display()
    )]
    PrivateKeyMode { path: PathBuf, mode: u32 },

    #[error("the keys of the token issuer {issuer} (auth.keys) cannot be used: {}: {reason} [LC0143]", .path.display())]
    IssuerKeys {
        issuer: String,
        path: PathBuf,
        reason: String,
    },

    #[error("{0}")]
    Control(#[from] lightcone_control::ControlError),

    #[error("cannot set up the client for HTTP requests of the server: {0} [LC0108]")]
    HttpClient(String),
}

impl Error {
    pub(crate) fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io {
            action,
            path,
            source,
        }
    }
}
