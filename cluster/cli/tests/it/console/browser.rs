//! Headless Chromium, driven through chromedriver. Both end with the test.

use std::future::Future;
use std::io::{BufRead, BufReader};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use fantoccini::actions::{
    Actions, InputSource, KeyAction, KeyActions, MOUSE_BUTTON_LEFT, MouseActions, PointerAction,
    TouchActions,
};
use fantoccini::error::NewSessionError;
use fantoccini::key::Key;
use fantoccini::{Client, ClientBuilder};
use futures::FutureExt;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(30);

/// After this time a page without running scripts is loaded again.
const LOADS: Duration = Duration::from_secs(10);
/// How often a page is loaded, and a browser started, before the test fails.
const ATTEMPTS: u32 = 4;
const PAUSE: Duration = Duration::from_millis(500);

/// The screen of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    /// 1280 x 800, with a mouse.
    Desktop,
    /// 390 x 844, with a touch screen.
    Phone,
}

/// A position on the page, pixels from its left and top.
pub type PagePoint = (f64, f64);

const DOWN: PointerAction = PointerAction::Down { button: MOUSE_BUTTON_LEFT };
const UP: PointerAction = PointerAction::Up { button: MOUSE_BUTTON_LEFT };

/// Moves the pointer for so long.
fn go((x, y): PagePoint, time: Duration) -> PointerAction {
    PointerAction::MoveTo { duration: Some(time), x, y }
}

/// A page under test.
pub struct Page {
    client: Client,
    screen: Screen,
}

/// Runs `test` on a page that shows `url`. The browser ends in any case. Without a browser the test is skipped,
/// except under CI, where it fails.
pub fn with_page<F: Future<Output = ()>>(
    url: String,
    screen: Screen,
    test: impl FnOnce(Page) -> F,
) {
    with_pages(url, [screen], async |[page]: [Page; 1]| test(page).await);
}

/// The same with several browsers, which know nothing of each other.
pub fn with_pages<const N: usize, F: Future<Output = ()>>(
    url: String,
    screens: [Screen; N],
    test: impl FnOnce([Page; N]) -> F,
) {
    if let Some(missing) = missing_program() {
        assert!(std::env::var_os("CI").is_none(), "{missing} is missing; CI must have it");
        println!(
            "skipped: {missing} is missing; `apt-get install chromium chromium-driver` has it"
        );
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (mut browsers, mut pages) = (Vec::new(), Vec::new());
        for screen in screens {
            let (driver, profile, client) = Driver::with_browser(screen).await;
            pages.push(Page { client: client.clone(), screen });
            browsers.push((driver, profile, client));
        }
        let run = async {
            for page in &pages {
                page.open(&url).await;
            }
            let Ok(pages) = pages.try_into() else { unreachable!("a page for each screen") };
            test(pages).await;
        };
        let result = AssertUnwindSafe(run).catch_unwind().await;
        let mut closed = Ok(());
        for (driver, profile, client) in browsers {
            closed = closed.and(client.close().await);
            drop((driver, profile));
        }
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
        closed.unwrap();
    });
}

fn missing_program() -> Option<&'static str> {
    ["chromium", "chromedriver"].into_iter().find(|program| {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        !std::env::split_paths(&paths).any(|p| p.join(program).is_file())
    })
}

/// The process of the driver, which prints its port.
struct Driver {
    child: Child,
    url: String,
}

impl Driver {
    /// A driver, and the browser that it drives, with its data. Chromedriver on port 0 takes a port that is free
    /// under IPv4, and ends if the same port is used under IPv6 (`IPv6 port not available`): then it is started
    /// again.
    async fn with_browser(screen: Screen) -> (Driver, Profile, Client) {
        let mut last = String::new();
        for _ in 0..ATTEMPTS {
            let profile = Profile::new();
            match Driver::start() {
                Ok(driver) => match driver.session(screen, &profile).await {
                    Ok(client) => return (driver, profile, client),
                    Err(error) => last = error.to_string(),
                },
                Err(said) => last = said,
            }
            println!("the browser did not start: {last}");
            tokio::time::sleep(PAUSE).await;
        }
        panic!("no browser after {ATTEMPTS} attempts: {last}");
    }

    /// Starts chromedriver. The error is its output.
    fn start() -> Result<Driver, String> {
        let (out, told) = std::io::pipe().unwrap();
        let mut child = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(told.try_clone().unwrap())
            .stderr(told)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(out).lines().map_while(Result::ok);
        let mut said = String::new();
        let port = lines.by_ref().find_map(|line| {
            said += &line;
            said.push('\n');
            let (_, port) = line.split_once("started successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        });
        let Some(port) = port else {
            let ended = child.wait().unwrap();
            return Err(format!("chromedriver ended ({ended}):\n{said}"));
        };
        // Further output is read and dropped, so that the driver never waits for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Driver { child, url: format!("http://127.0.0.1:{port}") })
    }

    async fn session(&self, screen: Screen, profile: &Profile) -> Result<Client, NewSessionError> {
        let (width, height, touch) = match screen {
            Screen::Desktop => (1280, 800, false),
            Screen::Phone => (390, 844, true),
        };
        let args = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ];
        let mut args: Vec<String> = args.map(String::from).into();
        args.push(format!("--user-data-dir={}", profile.0.display()));
        let metrics = json!({
            "width": width, "height": height, "pixelRatio": if touch { 2.0 } else { 1.0 },
            "touch": touch, "mobile": touch,
        });
        let options = json!({ "args": args, "mobileEmulation": { "deviceMetrics": metrics } });
        let Value::Object(capabilities) = json!({ "goog:chromeOptions": options }) else {
            unreachable!("an object is an object")
        };
        ClientBuilder::new(HttpConnector::new()).capabilities(capabilities).connect(&self.url).await
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // The driver may have ended by itself, which is fine.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// A new directory for the data of the browser.
struct Profile(PathBuf);

impl Profile {
    fn new() -> Profile {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let unique = format!("{}-{count}", std::process::id());
        let dir = std::env::temp_dir().join(format!("purview-console-{unique}"));
        std::fs::create_dir_all(&dir).unwrap();
        Profile(dir)
    }
}

impl Drop for Profile {
    fn drop(&mut self) {
        // The browser may still write to it; the system deletes the rest.
        let _gone = std::fs::remove_dir_all(&self.0);
    }
}

impl Page {
    /// Loads the page with its scripts. A browser aborts loading (`ERR_NETWORK_CHANGED`) whenever this machine gets
    /// or loses a network, as in the tests of partitions: then the page is loaded again.
    async fn open(&self, url: &str) {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            let gone_to = self.client.goto(url).await;
            let begin = Instant::now();
            while gone_to.is_ok() && begin.elapsed() < LOADS {
                if self.eval("Boolean(window.purview)").await == json!(true) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(40)).await;
            }
            last = gone_to.err();
        }
        panic!("{url} is not loaded after {ATTEMPTS} attempts: {last:?}");
    }

    /// Loads the page anew, which forgets everything.
    pub async fn reload(&self) {
        let url = self.client.current_url().await.unwrap();
        self.open(url.as_str()).await;
    }

    /// The value of a JavaScript expression.
    pub async fn eval(&self, expression: &str) -> Value {
        self.client.execute(&format!("return ({expression})"), Vec::new()).await.unwrap()
    }

    /// Waits until a JavaScript expression is true.
    pub async fn until(&self, expression: &str) {
        let begin = Instant::now();
        while self.eval(&format!("Boolean({expression})")).await != json!(true) {
            if begin.elapsed() > PATIENCE {
                let state = self.eval("JSON.stringify(window.purview)").await;
                panic!("never true: {expression}\npurview = {state}");
            }
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
    }

    /// Clicks or taps at a position of the page.
    pub async fn press(&self, x: f64, y: f64) {
        let (x, y) = (x.round(), y.round());
        let go = PointerAction::MoveTo { duration: None, x, y };
        let (down, up) = (DOWN, UP);
        match self.screen {
            Screen::Desktop => {
                let mouse = MouseActions::new("mouse".into()).then(go).then(down).then(up);
                self.client.perform_actions(mouse).await.unwrap();
            }
            Screen::Phone => {
                let finger = TouchActions::new("finger".into()).then(go).then(down).then(up);
                self.client.perform_actions(finger).await.unwrap();
            }
        }
    }

    /// Drags from position to position: with the mouse, or with one finger for each pair.
    pub async fn drag(&self, paths: &[(PagePoint, PagePoint)]) {
        let steps = |(from, to): (PagePoint, PagePoint)| {
            [go(from, Duration::ZERO), DOWN, go(to, Duration::from_millis(100)), UP]
        };
        if self.screen == Screen::Desktop {
            let mouse = MouseActions::new("mouse".into());
            let mouse = steps(paths[0]).into_iter().fold(mouse, |m, step| m.then(step));
            return self.client.perform_actions(mouse).await.unwrap();
        }
        let mut all = Actions::default();
        for (i, path) in paths.iter().enumerate() {
            let finger = TouchActions::new(format!("finger{i}"));
            all = all.and(steps(*path).into_iter().fold(finger, |f, step| f.then(step)));
        }
        self.client.perform_actions(all).await.unwrap();
    }

    /// Clicks or taps the element with this test id.
    pub async fn press_on(&self, testid: &str) {
        let box_of = format!(
            "(() => {{ const b = document.querySelector('[data-testid={testid}]')\
             .getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; }})()"
        );
        let at = self.eval(&box_of).await;
        self.press(at[0].as_f64().unwrap(), at[1].as_f64().unwrap()).await;
    }

    /// Clicks or taps the position of an entity.
    pub async fn press_entity(&self, id: u64) {
        let begin = Instant::now();
        // Another entity may walk past the pointer: several tries.
        loop {
            let at = self.eval(&format!("window.purview.placeOf({id})")).await;
            self.press(at["x"].as_f64().unwrap(), at["y"].as_f64().unwrap()).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            if self.eval("window.purview.selected").await == json!(id) {
                return;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "no press selects {id}");
        }
    }

    /// Presses the shift key, or releases it.
    pub async fn shift(&self, held: bool) {
        self.key(char::from(Key::Shift), held).await;
    }

    /// Presses a key, or releases it.
    pub async fn key(&self, value: char, held: bool) {
        let action = if held { KeyAction::Down { value } } else { KeyAction::Up { value } };
        let keys = KeyActions::new("keys".into()).then(action);
        self.client.perform_actions(keys).await.unwrap();
    }

    /// Presses a key and releases it.
    pub async fn tap(&self, value: char) {
        self.key(value, true).await;
        self.key(value, false).await;
    }

    /// Puts a finger on the page, moves it, and lifts it after a time.
    pub async fn hold(&self, from: PagePoint, to: PagePoint, time: Duration) {
        let finger = TouchActions::new("thumb".into())
            .then(go(from, Duration::ZERO))
            .then(DOWN)
            .then(go(to, Duration::from_millis(50)))
            .then(PointerAction::Pause { duration: time })
            .then(UP);
        self.client.perform_actions(finger).await.unwrap();
    }

    /// Types into the focused element.
    pub async fn type_text(&self, text: &str) {
        self.client.active_element().await.unwrap().send_keys(text).await.unwrap();
    }

    /// The text of the element with this test id.
    pub async fn text(&self, testid: &str) -> String {
        let text = self
            .eval(&format!("document.querySelector('[data-testid={testid}]').innerText.trim()"))
            .await;
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Asserts that the page had no error of a script, a promise or the content policy.
    pub async fn assert_no_errors(&self) {
        assert_eq!(self.eval("window.purview.errors").await, json!([]));
    }

    /// Writes a picture beside the path in `PURVIEW_SCREENSHOT`, if it is set; `suffix` goes before the extension.
    pub async fn picture(&self, suffix: &str) {
        let Some(path) = std::env::var_os("PURVIEW_SCREENSHOT").map(PathBuf::from) else { return };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let path = path.with_file_name(format!("{stem}{suffix}.png"));
        std::fs::write(&path, self.screenshot().await).unwrap();
        println!("wrote {}", path.display());
    }

    /// What the page shows, as PNG.
    pub async fn screenshot(&self) -> Vec<u8> {
        self.client.screenshot().await.unwrap()
    }
}
