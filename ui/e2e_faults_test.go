package ui_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

// TestFaults is e2e/faults.mjs: the connection, the server and the session end, hostile text,
// and use without a mouse. The story stops and starts basaltd.
func TestFaults(t *testing.T) {
	n := start(t)
	n.fill(t)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /stop", func(http.ResponseWriter, *http.Request) { n.Stop() })
	mux.HandleFunc("POST /start", func(http.ResponseWriter, *http.Request) { n.StartAgain(t) })
	control := httptest.NewServer(mux)
	t.Cleanup(control.Close)
	n.tell(t, "faults.mjs", "CONTROL="+control.URL)
}
