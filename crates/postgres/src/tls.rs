//! Encryption: the certificate, which may be replaced while the server runs, and sockets with or without it.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use lightcone_node::{check_private_key, config};
use parking_lot::Mutex;
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::server::TlsStream;
use tokio_rustls::TlsAcceptor;
use tokio_util::either::Either;

use crate::error::Error;

/// At most so often the files are looked at for a new certificate.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// A file with certificates, or with a key.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// How the protocol is called in a handshake.
const PROTOCOL_NAME: &[u8] = b"postgresql";
/// The first byte of a handshake. A message of a start begins with a zero.
const HANDSHAKE: u8 = 0x16;

/// A certificate with its key.
pub(super) struct Tls {
    files: Arc<Files>,
    current: Mutex<Current>,
}

struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

struct Current {
    acceptor: TlsAcceptor,
    /// Of the files that it was made from, or that could not be used.
    changed: [Option<SystemTime>; 2],
    looked: Instant,
}

impl Tls {
    /// Reads the files that the configuration names. None: it names none.
    pub fn load(config: &config::Postgres) -> Result<Option<Tls>, Error> {
        let (Some(certificate), Some(key)) = (&config.certificate, &config.key) else {
            return Ok(None);
        };
        let files = Files {
            certificate: certificate.clone(),
            key: key.clone(),
        };
        let changed = files.changed();
        let current = Current {
            acceptor: files.acceptor()?,
            changed,
            looked: Instant::now(),
        };
        Ok(Some(Tls {
            files: Arc::new(files),
            current: Mutex::new(current),
        }))
    }

    /// What accepts the next connection: with a new certificate, if the files have changed and can be used.
    pub async fn acceptor(&self) -> TlsAcceptor {
        let changed = {
            let mut current = self.current.lock();
            if current.looked.elapsed() < LOOK_EVERY {
                return current.acceptor.clone();
            }
            current.looked = Instant::now();
            current.changed
        };
        let files = self.files.clone();
        let read = tokio::task::spawn_blocking(move || {
            let now = files.changed();
            (now != changed).then(|| (now, files.acceptor()))
        });
        let read = read.await.unwrap_or_default();
        let mut current = self.current.lock();
        if let Some((changed, made)) = read {
            current.changed = changed;
            match made {
                Ok(acceptor) => {
                    tracing::info!("a new certificate for PostgreSQL's protocol");
                    current.acceptor = acceptor;
                }
                Err(error) => tracing::error!(%error, "the old certificate stays in use"),
            }
        }
        current.acceptor.clone()
    }
}

impl Files {
    fn changed(&self) -> [Option<SystemTime>; 2] {
        let of = |path: &Path| path.metadata().and_then(|found| found.modified()).ok();
        [of(&self.certificate), of(&self.key)]
    }

    fn acceptor(&self) -> Result<TlsAcceptor, Error> {
        let wrong = |path: &Path, reason: String| Error::Certificate {
            path: path.to_owned(),
            reason,
        };
        // Also one that was renewed is to be read by no other user.
        check_private_key(&self.key)?;
        let text = read(&self.certificate)?;
        let chain = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
        let chain = chain.map_err(|error| wrong(&self.certificate, error.to_string()))?;
        if chain.is_empty() {
            let reason = "there is no certificate in it, in PEM".to_owned();
            return Err(wrong(&self.certificate, reason));
        }
        let key = PrivateKeyDer::from_pem_slice(&read(&self.key)?)
            .map_err(|error| wrong(&self.key, error.to_string()))?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key));
        let mut config = config.map_err(|error| wrong(&self.certificate, error.to_string()))?;
        config.alpn_protocols = vec![PROTOCOL_NAME.to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path);
    let read = file.and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    read.map_err(|error| Error::Certificate {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(bytes)
}

/// A socket: left as it is, right encrypted.
pub(super) type Stream = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// Waits for the first byte, and leaves it there.
pub(super) async fn begins_with_tls(stream: &Stream) -> std::io::Result<bool> {
    let Stream::Left(socket) = stream else {
        return Ok(false);
    };
    let mut byte = [0];
    socket.peek(&mut byte).await?;
    Ok(byte[0] == HANDSHAKE)
}

pub(super) async fn encrypted(stream: Stream, acceptor: &TlsAcceptor) -> std::io::Result<Stream> {
    match stream {
        Stream::Left(socket) => Ok(Stream::Right(Box::new(acceptor.accept(socket).await?))),
        encrypted => Ok(encrypted),
    }
}

/// Completes when the other side sends nothing more, whether or not what it has sent was read.
pub(super) async fn closed(stream: &Stream, look_every: Duration) {
    let socket = match stream {
        Stream::Left(socket) => socket,
        Stream::Right(stream) => stream.get_ref().0,
    };
    loop {
        // An error is the end, too.
        let ready = socket.ready(Interest::READABLE).await;
        if ready.map_or(true, |ready| ready.is_read_closed()) {
            return;
        }
        tokio::time::sleep(look_every).await;
    }
}

pub(super) fn is_named_in_handshake(stream: &Stream) -> bool {
    match stream {
        Stream::Left(_) => false,
        Stream::Right(stream) => stream.get_ref().1.alpn_protocol() == Some(PROTOCOL_NAME),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    /// Makes a certificate with its key. False: there is no openssl.
    fn make(directory: &Path, name: &str) -> bool {
        let made = std::process::Command::new("openssl")
            .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -keyout key.pem -out cert.pem -subj".split(' '))
            .arg(format!("/CN={name}"))
            .current_dir(directory)
            .output();
        match made {
            Ok(made) => {
                assert!(made.status.success());
                true
            }
            Err(_) => {
                eprintln!("SKIPPED: there is no openssl; install the package openssl");
                false
            }
        }
    }

    #[tokio::test]
    async fn a_new_certificate_is_taken_and_a_bad_one_is_not() {
        let directory = tempfile::tempdir().expect("a directory");
        if !make(directory.path(), "one") {
            return;
        }
        let path = |name: &str| Some(directory.path().join(name));
        let config = config::Postgres {
            certificate: path("cert.pem"),
            key: path("key.pem"),
            ..config::Postgres::default()
        };
        let tls = Tls::load(&config).expect("good files").expect("named");
        let is_same = |a: &TlsAcceptor, b: &TlsAcceptor| Arc::ptr_eq(a.config(), b.config());
        let look = || tls.current.lock().looked = Instant::now() - 2 * LOOK_EVERY;
        let first = tls.acceptor().await;
        look();
        assert!(is_same(&tls.acceptor().await, &first));
        let later = |name: &str| {
            let file = std::fs::File::options()
                .append(true)
                .open(directory.path().join(name));
            let time = SystemTime::now() + Duration::from_secs(5);
            file.and_then(|file| file.set_modified(time)).expect("set");
        };
        let set_mode = |name: &str, mode| {
            let mode = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(directory.path().join(name), mode).expect("set");
        };
        make(directory.path(), "two");
        later("cert.pem");
        // Not yet: they were looked at just now.
        assert!(is_same(&tls.acceptor().await, &first));
        look();
        let second = tls.acceptor().await;
        assert!(!is_same(&second, &first));
        make(directory.path(), "three");
        set_mode("key.pem", 0o644);
        later("key.pem");
        look();
        let third = tls.acceptor().await;
        assert!(!is_same(&third, &second));
        let key = directory.path().join("key.pem").metadata().expect("a file");
        assert_eq!(
            key.permissions().mode() & 0o777,
            0o600,
            "others could read it"
        );
        std::fs::write(directory.path().join("cert.pem"), "nothing").expect("written");
        look();
        assert!(is_same(&tls.acceptor().await, &third));
    }
}
