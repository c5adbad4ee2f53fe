//go:build unix

package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/holdfast/internal/crashtest/testrun"
	"example.com/holdfast/queue"
)

// hostile is text that would be markup if anybody made markup of it.
const hostile = `<img src=x onerror=document.title='owned'><b id=owned>bold</b>`

// fill gives the scene two queues with something in every place of the page.
func (s *webScene) fill() {
	s.t.Helper()
	do := func(path, body string, args ...any) string {
		s.t.Helper()
		status, text := s.post(path, fmt.Sprintf(body, args...))
		if status != http.StatusOK {
			s.t.Fatalf("%s: %d %s", path, status, text)
		}
		return text
	}
	for i := range 12 {
		do("/v1/enqueue", `{"queue":"chat/outbox","id":"update-%03d","payload":{"to":"ann","text":"hello"},"key":"chat-42"}`, i)
	}
	do("/v1/enqueue", `{"queue":"mail","id":"held","payload":1}`)
	do("/v1/claim", `{"queue":"mail","lease_ms":600000,"label":%q}`, "worker-3")
	for _, id := range []string{"welcome-ann", "invoice-2024-000123"} {
		do("/v1/enqueue", `{"queue":"mail","id":%q,"payload":{"html":%q,"number":12345678901234567890.10}}`, id, hostile)
		d := must[claimedLine](s.t, 200, do("/v1/claim", `{"queue":"mail","lease_ms":600000}`)).Deliveries[0]
		do("/v1/fail", `{"receipt":%q,"cause":%q}`, d.Receipt, "smtp: 550 mailbox unavailable "+hostile)
	}
	do("/v1/enqueue", `{"queue":"mail","id":"later","payload":{"a":[1,2,3]},"delay_ms":7200000}`)
	do("/v1/enqueue", `{"queue":"mail","id":"next","payload":"<i>x</i>"}`)
}

// site serves the scene on a real address; change may plant a fault in the page's files and
// headers.
func (s *webScene) site(change func(path, text string, h http.Header) string) (url string) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if change == nil || strings.HasPrefix(r.URL.Path, "/v1/") {
			s.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		s.ServeHTTP(rec, r)
		text := change(r.URL.Path, rec.Body.String(), rec.Header())
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write([]byte(text)) // the browser may have gone
	}))
	s.t.Cleanup(server.Close)
	return server.URL + "/"
}

// visit opens the page, and waits until it can be typed into.
func (b *browser) visit(url string) {
	b.t.Helper()
	b.open(url)
	b.mustBecome(`document.activeElement === document.getElementById("token")`)
	// What is typed before the first frame goes to the page that was there.
	eval[bool](b, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
}

// login opens the page and logs in as somebody does who pastes the token.
func (b *browser) login(url string) {
	b.t.Helper()
	b.visit(url)
	b.ask("Input.insertText", map[string]any{"text": webToken}, nil)
	b.mustBecome(fmt.Sprintf(`document.getElementById("token").value === %q`, webToken))
	b.press("Enter", 13, "\r")
	b.mustBecome(`document.querySelector("#queues tbody tr")`)
}

// openQueue shows the messages of a queue.
func (b *browser) openQueue(name string) {
	b.t.Helper()
	b.click(fmt.Sprintf(`#queues button[aria-label="Show %s"]`, name))
	b.mustBecome(fmt.Sprintf(`!document.getElementById("queue").hidden && document.getElementById("queue-head").textContent === %q`, name))
}

// nothingRan says what of a hostile text came alive, or is empty.
func (b *browser) nothingRan() string {
	b.t.Helper()
	return eval[string](b, `[
		document.title === "owned" && "a script ran",
		document.getElementById("owned") && "markup of a payload is in the page",
		document.querySelector("img") && "an image of a payload is in the page",
	].filter(Boolean).join("; ")`)
}

// showsPayload opens a failed message and says what is wrong with how its payload is shown,
// or is empty.
func (b *browser) showsPayload(url string) string {
	b.t.Helper()
	b.login(url)
	b.openQueue("mail")
	b.click(`#failed button[aria-label="Show welcome-ann"]`)
	b.mustBecome(`document.getElementById("message").open || !document.getElementById("trouble").hidden`)
	if eval[bool](b, `!document.getElementById("message").open || !document.getElementById("message-payload").textContent`) {
		return "the payload is not shown"
	}
	b.until(`!document.querySelector("img") || document.title === "owned"`) // an image that cannot be loaded says so a moment later
	if ran := b.nothingRan(); ran != "" {
		return ran
	}
	want := fmt.Sprintf(`{"html":%q,"number":12345678901234567890.10}`, hostile)
	if got := eval[string](b, `document.getElementById("message-payload").textContent`); got != want {
		return fmt.Sprintf("the payload is shown as %s, not %s", got, want)
	}
	return ""
}

// The page, in a real browser.
func TestPage(t *testing.T) {
	if testing.Short() || testrun.RaceDetector() {
		t.Skip("a browser tells nothing of races, and takes its time")
	}
	b := newBrowser(t) // one for all: its start is the longest of it
	t.Run("payloads are text", func(t *testing.T) { payloadsAreText(t, b) })
	t.Run("use", func(t *testing.T) { usePage(t, b) })
}

// usePage uses the page by mouse and by keyboard.
func usePage(t *testing.T, b *browser) {
	defer b.in(t)()
	s := newScene(t)
	s.fill()
	url := s.site(nil)
	b.screen(360, 740, false)

	t.Run("a wrong token", func(t *testing.T) {
		defer b.in(t)()
		b.visit(url)
		b.picture("login-360")
		b.ask("Input.insertText", map[string]any{"text": "wrong"}, nil)
		b.press("Enter", 13, "\r")
		b.mustBecome(`document.getElementById("login-why").textContent.includes("not the one")`)
		if got := eval[bool](b, `sessionStorage.getItem("token") === null && document.getElementById("store").hidden`); !got {
			t.Error("the page is open, or the wrong token is kept")
		}
	})
	b.forgets() // the planted faults of other tests, and the 401 here
	b.login(url)
	t.Run("the token stays in the tab", func(t *testing.T) {
		defer b.in(t)()
		if got := eval[string](b, `[location.href, document.cookie, JSON.stringify(localStorage), document.documentElement.outerHTML, document.getElementById("token").value].join()`); strings.Contains(got, webToken) {
			t.Errorf("the token is in %s", got)
		}
		if got := eval[string](b, `sessionStorage.getItem("token")`); got != webToken {
			t.Errorf("sessionStorage has %q", got)
		}
	})
	t.Run("queues", func(t *testing.T) {
		defer b.in(t)()
		cells := eval[[]string](b, `[...document.querySelectorAll("#queues tbody tr:nth-child(2) > *")].map((e) => e.textContent)`)
		want := []string{"mail", "1", "1", "0", "1", "0", "2"}
		if len(cells) != 10 || fmt.Sprint(cells[:7]) != fmt.Sprint(want) {
			t.Errorf("got %q, want %q and ages and rates", cells, want)
		}
	})
	b.openQueue("mail")
	b.picture("queue-360-top")
	t.Run("holders and failures", func(t *testing.T) {
		defer b.in(t)()
		text := eval[string](b, `document.getElementById("queue").innerText`)
		for _, want := range []string{"worker-3", "ends in 9 min", "smtp: 550 mailbox unavailable " + hostile, "later", "scheduled, due in 1 h"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing in\n%s", want, text)
			}
		}
		if ran := b.nothingRan(); ran != "" {
			t.Error(ran)
		}
	})
	t.Run("it fits", func(t *testing.T) {
		defer b.in(t)()
		for _, size := range [][2]int{{360, 740}, {320, 600}, {1200, 800}} {
			for _, dark := range []bool{false, true} {
				b.screen(size[0], size[1], dark)
				if got := eval[float64](b, "document.documentElement.scrollWidth"); int(got) > size[0] {
					t.Errorf("at %v it is %v wide", size, got)
				}
				if small := eval[[]string](b, `[...document.querySelectorAll("button:not(.name)")].filter((e) => e.offsetParent && e.offsetHeight < 32).map((e) => e.textContent)`); len(small) > 0 {
					t.Errorf("at %v these keys are too small for a finger: %q", size, small)
				}
				if poor := b.poorContrast(); len(poor) > 0 {
					t.Errorf("at %v, dark %v, hard to read: %q", size, dark, poor)
				}
				b.picture(fmt.Sprintf("queue-%d-dark-%v", size[0], dark))
			}
		}
		b.screen(360, 740, false)
	})
	t.Run("everything has a name", func(t *testing.T) {
		defer b.in(t)()
		if got := eval[[]string](b, `[...document.querySelectorAll("button, input, dialog, table, section")].filter((e) => e.checkVisibility() && !(
			e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent.trim() || (e.id && document.querySelector("label[for=" + e.id + "]"))
		)).map((e) => e.outerHTML)`); len(got) > 0 {
			t.Errorf("without a name: %q", got)
		}
	})
	t.Run("a change is asked for first", func(t *testing.T) {
		defer b.in(t)()
		b.click(`#failed button[aria-label="Purge welcome-ann"]`)
		b.mustBecome(`document.getElementById("confirm").open`)
		b.picture("confirm-360")
		if got := eval[string](b, "document.activeElement.textContent"); got != "Cancel" {
			t.Errorf("the focus is on %q", got)
		}
		b.press("Escape", 27, "")
		b.mustBecome(`!document.getElementById("confirm").open`)
		if _, err := s.store.ShowFailed(t.Context(), "welcome-ann", queue.FailedOptions{}); err != nil {
			t.Errorf("after Escape: %v", err)
		}
	})
	t.Run("keys", func(t *testing.T) {
		defer b.in(t)()
		for _, step := range []struct{ selector, gone string }{
			{`#failed button[aria-label="Purge welcome-ann"]`, `!document.querySelector('#failed button[aria-label="Purge welcome-ann"]')`},
			{`#failed button[aria-label="Reprocess invoice-2024-000123"]`, `document.getElementById("failed").textContent.includes("No message has failed")`},
			{`#held button[aria-label="Release held"]`, `document.getElementById("held").textContent.includes("Nothing is in hands")`},
			{`#pause`, `document.getElementById("pause").textContent === "Resume"`},
		} {
			b.click(step.selector)
			b.mustBecome(`document.getElementById("confirm").open`)
			b.press("Tab", 9, "")
			b.press("Enter", 13, "\r")
			b.mustBecome(step.gone)
		}
		_, err := s.store.ShowFailed(t.Context(), "welcome-ann", queue.FailedOptions{})
		st, _ := s.store.Status(t.Context(), queue.StatusOptions{Queues: []string{"mail"}})
		if q := st.Queues["mail"]; !errors.Is(err, queue.ErrNotFailed) || q.Failed != 0 || q.Processing != 0 || !q.Paused || q.Counters.Reprocessed != 1 {
			t.Errorf("the store: %+v, %v", q, err)
		}
	})
	t.Run("a refusal is told", func(t *testing.T) {
		defer b.in(t)()
		b.screen(1200, 800, true)
		const again = `document.dispatchEvent(new Event("visibilitychange"))` // it looks at once
		s.store.status = func(queue.StatusOptions) (queue.Status, error) { return queue.Status{}, queue.ErrClosed }
		eval[bool](b, again)
		b.mustBecome(`!document.getElementById("trouble").hidden && document.getElementById("trouble").textContent.includes("closed")`)
		s.store.status = nil
		eval[bool](b, again)
		b.mustBecome(`document.getElementById("trouble").hidden`)
	})
	t.Run("logging out", func(t *testing.T) {
		defer b.in(t)()
		b.click("#logout")
		b.mustBecome(`!document.getElementById("login").hidden && sessionStorage.length === 0 && !document.querySelector("#queues tr")`)
	})
	for _, said := range b.forgets() {
		if !strings.Contains(said, "503") { // what the store that is closed was told of
			t.Errorf("the page complains: %s", said)
		}
	}
}

// poorContrast lists texts whose contrast with what is behind them is below 4.5 to 1.
func (b *browser) poorContrast() []string {
	b.t.Helper()
	return eval[[]string](b, `(() => {
		const part = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
		const light = ([r, g, b]) => 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
		const rgb = (s) => s.match(/[\d.]+/g).map(Number);
		const behind = (e) => {
			for (; e; e = e.parentElement) {
				const c = rgb(getComputedStyle(e).backgroundColor);
				if (c.length < 4 || c[3] === 1) return c;
			}
			return [255, 255, 255];
		};
		const poor = [];
		for (const e of document.querySelectorAll("body *")) {
			if (!e.offsetParent || ![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
			const [a, z] = [light(rgb(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
			const ratio = (a + 0.05) / (z + 0.05);
			if (ratio < 4.5) poor.push(e.textContent + ": " + ratio.toFixed(1));
		}
		return poor;
	})()`)
}

// A payload is text, whatever is in it; and the test that says so finds a page that makes
// markup of it, also where only the policy holds it back.
func payloadsAreText(t *testing.T, b *browser) {
	defer b.in(t)()
	s := newScene(t)
	s.fill()
	b.screen(360, 740, true)
	const asText = `$("message-payload").textContent = `
	asMarkup := func(path, text string, h http.Header) string {
		if path != "/page.js" {
			return text
		}
		if strings.Count(text, asText) != 1 {
			t.Fatalf("page.js has %s %d times: plant anew", asText, strings.Count(text, asText))
		}
		return strings.Replace(text, asText, `$("message-payload").innerHTML = `, 1)
	}
	for _, c := range []struct {
		name   string
		change func(path, text string, h http.Header) string
		want   string
	}{
		{"as it is", nil, ""},
		{"as markup", func(path, text string, h http.Header) string {
			h.Del("Content-Security-Policy")
			return asMarkup(path, text, h)
		}, "a script ran; markup of a payload is in the page; an image of a payload is in the page"},
		{"as markup, under the policy", asMarkup, "the payload is not shown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer b.in(t)()
			if got := b.showsPayload(s.site(c.change)); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			b.picture("payload-" + strings.ReplaceAll(c.name, " ", "-"))
		})
	}
}

// What a browser loads, all of it: a page for a phone's network.
func TestPageWeight(t *testing.T) {
	s := newScene(t)
	total := 0
	for _, path := range []string{"/", "/page.css", "/page.js"} {
		status, text := s.get(path)
		if status != http.StatusOK {
			t.Fatalf("%s: %d", path, status)
		}
		total += len(text)
	}
	t.Logf("the page weighs %d bytes", total)
	if total > 40<<10 {
		t.Errorf("the page weighs %d bytes, more than 40 KiB", total)
	}
	_, index := s.get("/")
	for _, never := range []string{"<style", "style=", "onclick", "<script>", "http:", "https:"} {
		if strings.Contains(index, never) {
			t.Errorf("index.html has %q", never)
		}
	}
}
