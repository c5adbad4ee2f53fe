//go:build unix

package web

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"example.com/holdfast/internal/crashtest/testrun"
)

// A browser is a headless Chromium, spoken to over a pair of pipes in the protocol of its
// developer tools: messages of JSON, each ended by a zero byte. That is little enough to
// need no library for it.
type browser struct {
	t       *testing.T
	to      *os.File
	session string

	mu      sync.Mutex
	last    int
	answers map[int]chan cdpMessage
	said    []string      // what the page wrote to its console, and what it threw
	loaded  chan struct{} // a page was
	gone    chan struct{}
}

type cdpMessage struct {
	ID      int             `json:"id,omitempty"`
	Session string          `json:"sessionId,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// within bounds one answer of the browser, as until does within it. Neither measures anything:
// a browser that hangs is not to hang the tests.
const within = time.Minute

// newBrowser starts Chromium with a profile of its own, which goes with it.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	var exe string
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			exe = path
			break
		}
	}
	if exe == "" {
		testrun.Skip(t, "needs Chromium: the Debian package chromium")
	}
	profile, err := os.MkdirTemp("", "holdfast-chromium")
	if err != nil {
		t.Fatal(err)
	}
	hears, to := pipe(t)
	from, says := pipe(t)
	cmd := exec.Command(exe, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-extensions", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio",
		"--hide-scrollbars", "--no-proxy-server", "--remote-debugging-pipe", "--user-data-dir="+profile, "about:blank")
	cmd.Env = append(os.Environ(), "HOME="+profile, "XDG_CONFIG_HOME="+profile, "XDG_CACHE_HOME="+profile)
	cmd.ExtraFiles = []*os.File{hears, says} // descriptors 3 and 4
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hears.Close()
	says.Close()
	b := &browser{t: t, to: to, answers: map[int]chan cdpMessage{}, loaded: make(chan struct{}, 64), gone: make(chan struct{})}
	go b.listen(from)
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its own processes with it
		_ = cmd.Wait()                                      // killed
		<-b.gone
		to.Close()
		from.Close()
		for range 50 { // a process of its that is about to be gone may still write
			if os.RemoveAll(profile) == nil {
				break
			}
		}
	})
	var target struct{ TargetID string }
	b.ask("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.ask("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.ask(domain+".enable", nil, nil)
	}
	b.ask("Page.bringToFront", nil, nil)
	b.ask("Emulation.setFocusEmulationEnabled", map[string]any{"enabled": true}, nil) // else nothing can be typed
	return b
}

func pipe(t *testing.T) (r, w *os.File) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// listen hands answers to who asked, and keeps what the page complains of.
func (b *browser) listen(from *os.File) {
	defer close(b.gone)
	in := bufio.NewReaderSize(from, 1<<20)
	for {
		text, err := in.ReadBytes(0)
		if err != nil {
			return
		}
		var m cdpMessage
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue // none that we asked for
		}
		b.mu.Lock()
		if c := b.answers[m.ID]; c != nil {
			delete(b.answers, m.ID)
			c <- m
		}
		switch m.Method {
		case "Page.loadEventFired":
			select {
			case b.loaded <- struct{}{}:
			default: // nobody waits
			}
		case "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded":
			b.said = append(b.said, string(text[:len(text)-1]))
		}
		b.mu.Unlock()
	}
}

// forgets takes what the page has complained of so far.
func (b *browser) forgets() (said []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	said, b.said = b.said, nil
	return said
}

// in makes the browser tell its troubles to a subtest, until that has ended.
func (b *browser) in(t *testing.T) (out func()) {
	was := b.t
	b.t = t
	return func() { b.t = was }
}

// ask calls a method of the protocol.
func (b *browser) ask(method string, params, result any) {
	b.t.Helper()
	b.mu.Lock()
	b.last++
	id, answer := b.last, make(chan cdpMessage, 1)
	b.answers[id] = answer
	b.mu.Unlock()
	text, err := json.Marshal(cdpMessage{ID: id, Session: b.session, Method: method, Params: params})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := b.to.Write(append(text, 0)); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			b.t.Fatalf("%s: %s", method, m.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(m.Result, result); err != nil {
				b.t.Fatalf("%s: %v: %s", method, err, m.Result)
			}
		}
	case <-b.gone:
		b.t.Fatalf("%s: the browser is gone", method)
	case <-time.After(within):
		b.t.Fatalf("%s: no answer", method)
	}
}

// eval runs an expression in the page, waits for it if it is a promise, and gives its value.
func eval[T any](b *browser, format string, args ...any) (v T) {
	b.t.Helper()
	var answer struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	b.ask("Runtime.evaluate", map[string]any{
		"expression": fmt.Sprintf(format, args...), "awaitPromise": true, "returnByValue": true, "userGesture": true,
	}, &answer)
	if e := answer.ExceptionDetails; e != nil {
		b.t.Fatalf("%s %s", e.Text, e.Exception.Description)
	}
	if len(answer.Result.Value) > 0 {
		if err := json.Unmarshal(answer.Result.Value, &v); err != nil {
			b.t.Fatalf("%v: %s", err, answer.Result.Value)
		}
	}
	return v
}

// open goes to a page and waits until it is loaded.
func (b *browser) open(url string) {
	b.t.Helper()
	eval[bool](b, "window.before = true") // a mark on the document that is left
	b.ask("Page.navigate", map[string]any{"url": url}, nil)
	for {
		select {
		case <-b.loaded:
		case <-time.After(within):
			b.t.Fatalf("%s is not loaded", url)
		}
		if eval[bool](b, "!window.before && location.href === %q", url) {
			return
		}
	}
}

// until waits inside the page until an expression is true: looked at whenever a frame is
// due, and reports whether it became so.
func (b *browser) until(expression string) bool {
	b.t.Helper()
	return eval[bool](b, `new Promise((done) => {
		const end = performance.now() + 25000;
		(function look() {
			let is = false;
			try { is = Boolean(%s); } catch { /* not yet */ }
			if (is) done(true);
			else if (performance.now() > end) done(false);
			else setTimeout(look, 10);
		})();
	})`, expression)
}

func (b *browser) mustBecome(expression string) {
	b.t.Helper()
	if !b.until(expression) {
		b.t.Fatalf("it never holds: %s\nthe page says: %s", expression, eval[string](b, "document.body.innerText"))
	}
}

// screen sets the size of the window and whether it is dark.
func (b *browser) screen(width, height int, dark bool) {
	b.t.Helper()
	b.ask("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	scheme := map[bool]string{true: "dark", false: "light"}[dark]
	b.ask("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// press types a key, as somebody without a mouse does.
func (b *browser) press(name string, code int, text string) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		p := map[string]any{"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code}
		if kind == "keyDown" && text != "" {
			p["text"] = text
		}
		b.ask("Input.dispatchKeyEvent", p, nil)
	}
}

// click clicks with the mouse in the middle of what a selector finds, where it is seen.
func (b *browser) click(selector string) {
	b.t.Helper()
	b.mustBecome(fmt.Sprintf("document.querySelector(%q)", selector))
	at := eval[struct{ X, Y float64 }](b, `(() => {
		const e = document.querySelector(%q);
		e.scrollIntoView({ block: "center", behavior: "instant" });
		const r = e.getBoundingClientRect();
		return { X: r.x + r.width / 2, Y: r.y + r.height / 2 };
	})()`, selector)
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		b.ask("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
	}
}

// picture keeps what is seen, where a directory for it is named.
func (b *browser) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("HOLDFAST_PICTURES")
	if dir == "" {
		return
	}
	var shot struct{ Data string }
	b.ask("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		b.t.Fatal(err)
	}
}
