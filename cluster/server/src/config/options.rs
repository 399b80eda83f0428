//! Turns sections of the configuration into the options of the parts that they set up. The parts do not know the
//! configuration.

use super::Config;
use super::settings::{ClusterSettings, Expiry, TokenSettings};
use crate::gateway::GatewayConfig;
use crate::gateway::token::Rules;
use crate::gateway::token::keys::Files;
use crate::storage::password::{Password, PasswordError};

impl From<&Config> for GatewayConfig {
    fn from(config: &Config) -> GatewayConfig {
        let s = &config.gateway;
        GatewayConfig {
            ws_addr: Some(s.ws),
            tcp_addr: s.tcp,
            rate_limit: s.rate_limit,
            burst: s.burst,
            heartbeat: s.heartbeat,
            handshake_timeout: s.handshake_timeout,
            send_queue: s.send_queue,
            slow_close: s.slow_close,
            grace_period: s.grace_period,
            max_sessions: s.max_sessions as u64,
            max_sessions_per_subject: config.token.sessions_per_subject(),
            unauthenticated: s.unauthenticated,
            limits: s.limits.clone(),
            proxies: s.proxies.clone(),
            origins: s.origins.clone(),
            tls: s.tls.clone(),
            ..GatewayConfig::default()
        }
    }
}

impl TokenSettings {
    /// Where the keys are.
    pub fn files(&self) -> Files {
        Files { secret: self.secret_file.clone(), set: self.keys_file.clone() }
    }

    /// What a token must say.
    pub fn rules(&self) -> Rules {
        let (issuer, audience) = (self.issuer.clone(), self.audience.clone());
        let (may_last, claims) = (self.expiry == Expiry::Optional, self.claims.clone());
        Rules { issuer, audience, may_last, claims }
    }
}

impl ClusterSettings {
    /// The user at etcd and its password, if there is one.
    ///
    /// # Errors
    /// The file of the password cannot be read, or holds none.
    pub fn etcd_login(&self) -> Result<Option<(String, Password)>, PasswordError> {
        let key = "cluster.etcd_password_file";
        let password = self.etcd_password_file.as_deref().map(|file| Password::read(key, file));
        Ok(password.transpose()?.map(|password| (self.etcd_user.clone(), password)))
    }

    /// The address of the PostgreSQL, with its password; `None`: there is no PostgreSQL.
    ///
    /// # Errors
    /// As [`ClusterSettings::etcd_login`].
    pub fn postgres_login(&self) -> Result<Option<String>, PasswordError> {
        if self.postgres == "off" {
            return Ok(None);
        }
        let key = "cluster.postgres_password_file";
        let file = self.postgres_password_file.as_deref();
        let password = file.map(|file| Password::read(key, file)).transpose()?;
        let bare = self.postgres.clone();
        Ok(Some(password.map_or(bare, |password| password.within(&self.postgres))))
    }
}
