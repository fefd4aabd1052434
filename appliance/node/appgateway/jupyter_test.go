package appgateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/appliance/test/kit/port"
)

// startJupyter starts Debian's Jupyter Notebook without a password, as the catalog's app
// does, and returns its address.
func startJupyter(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("jupyter-notebook")
	if err != nil {
		t.Skip("jupyter-notebook is not installed: make prepared installs it")
	}
	dir, at := t.TempDir(), port.Free(t)
	cmd := exec.Command(program, "--no-browser", "--allow-root", "--ip=127.0.0.1", fmt.Sprintf("--port=%d", at), "--port-retries=0",
		"--NotebookApp.token=", "--NotebookApp.allow_remote_access=True", "--notebook-dir="+dir)
	cmd.Env = append(os.Environ(), "HOME="+dir, "JUPYTER_RUNTIME_DIR="+filepath.Join(dir, "run"))
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it then ends its kernels
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	address := fmt.Sprintf("127.0.0.1:%d", at)
	patience.Until(t, time.Minute, "Jupyter responds", func() bool {
		resp, err := http.Get("http://" + address + "/api")
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	})
	return address
}

// TestJupyter uses a Jupyter Notebook through the gateway as its page does: with its
// cookie against forged requests, and a WebSocket to a kernel that computes.
func TestJupyter(t *testing.T) {
	b := startAt(t, usual, startJupyter(t))
	b.enter()
	b.want("the page", http.StatusOK, "GET", home+"tree", "")
	at, err := url.Parse(home)
	if err != nil {
		t.Fatal(err)
	}
	var xsrf string
	for _, c := range b.browser.Jar.Cookies(at) {
		if c.Name == "_xsrf" {
			xsrf = c.Value
		}
	}
	origin := strings.TrimSuffix(home, "/")
	b.want("a kernel without Jupyter's cookie", http.StatusForbidden, "POST", home+"api/kernels", "{}", "Origin", origin)
	text, _ := b.want("a kernel", http.StatusCreated, "POST", home+"api/kernels", `{"name": "python3"}`, "Origin", origin, "X-XSRFToken", xsrf)
	var kernel struct{ ID string }
	if err := json.Unmarshal([]byte(text), &kernel); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := patience.Context(t.Context(), 2*time.Minute)
	defer cancel()
	dial := &websocket.DialOptions{HTTPClient: b.browser, HTTPHeader: http.Header{"Origin": {origin}}}
	c, resp, err := websocket.Dial(ctx, "wss"+strings.TrimPrefix(home, "https")+"api/kernels/"+kernel.ID+"/channels?session_id=test", dial)
	if err != nil {
		t.Fatalf("connect to the kernel: %v (response %v)", err, resp)
	}
	defer func() { _ = c.CloseNow() }()
	c.SetReadLimit(1 << 20)
	if got := compute(ctx, t, c, "6 * 7"); got != "42" {
		t.Errorf("the kernel's result of 6 * 7 = %q, want 42", got)
	}
}

// compute sends code to a Jupyter kernel, and returns its result as text (Jupyter's
// messaging protocol, version 5.3).
func compute(ctx context.Context, t *testing.T, c *websocket.Conn, code string) string {
	t.Helper()
	type message struct {
		Channel string         `json:"channel"`
		Header  map[string]any `json:"header"`
		Parent  map[string]any `json:"parent_header"`
		Meta    map[string]any `json:"metadata"`
		Content map[string]any `json:"content"`
	}
	request := message{"shell", map[string]any{"msg_id": "one", "msg_type": "execute_request", "session": "test", "username": "", "version": "5.3"},
		map[string]any{}, map[string]any{}, map[string]any{"code": code, "silent": false, "store_history": false, "user_expressions": map[string]any{}, "allow_stdin": false}}
	raw, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Write(ctx, websocket.MessageText, raw); err != nil {
		t.Fatal(err)
	}
	for {
		_, raw, err := c.Read(ctx)
		if err != nil {
			t.Fatalf("wait for the kernel's result: %v", err)
		}
		var m message
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		switch m.Header["msg_type"] {
		case "execute_result":
			text, _ := m.Content["data"].(map[string]any)["text/plain"].(string)
			return text
		case "error":
			t.Fatalf("the kernel's error: %v", m.Content)
		}
	}
}
