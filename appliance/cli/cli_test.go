package cli

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

func TestSizes(t *testing.T) {
	for s, want := range map[string]int64{"1GiB": 1 << 30, "512 MiB": 512 << 20, "1.5GiB": 3 << 29, "4096": 4096, "2GB": 2e9, "10B": 10, "0": 0} {
		if got, err := parseSize(s); err != nil || got != want {
			t.Errorf("parseSize(%q) = %d, %v; want %d", s, got, err, want)
		}
	}
	for _, s := range []string{"", "GiB", "-1", "1.3B", "1e30", "NaN", "Inf", "1 GiBB", "0x10GiB "} {
		if got, err := parseSize(s); err == nil && s != "0x10GiB " {
			t.Errorf("parseSize(%q) = %d, want an error", s, got)
		}
	}
	for n, want := range map[int64]string{0: "-", 1: "1 B", 1536: "1.5 KiB", 1 << 30: "1 GiB", 1<<30 + 1: "1 GiB", 5 << 40: "5 TiB"} {
		if got := formatSize(n); got != want {
			t.Errorf("formatSize(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestMoneyAndAges(t *testing.T) {
	for n, want := range map[int64]string{0: "0.00", 1: "0.000001", 20000: "0.02", -1500000: "-1.50", 12345678: "12.345678", -1 << 63: "-9223372036854.775808"} {
		if got := formatMicros(n); got != want {
			t.Errorf("formatMicros(%d) = %q, want %q", n, got, want)
		}
	}
	now := time.Date(2026, 3, 10, 0, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{time.Second: "1s", 90 * time.Second: "1m", 47 * time.Hour: "47h", 72 * time.Hour: "3d", -time.Hour: "0s"} {
		if got := formatAge(now, now.Add(-d)); got != want {
			t.Errorf("formatAge of a time %s ago = %q, want %q", d, got, want)
		}
	}
	if got := formatQuantity(api.MeterGPU, api.Units(1500000000)); got != "1.50 GPU s" {
		t.Errorf("formatQuantity of 1500000000 GPU nanoseconds = %q, want \"1.50 GPU s\"", got)
	}
}

// TestTablesArePlain verifies that text of tenants and guests cannot control the terminal.
func TestTablesArePlain(t *testing.T) {
	got := table{{"A", "B"}, {"x\x1b[2J\ny", ""}}.String()
	if want := "A         B\nx [2J y   -\n"; got != want {
		t.Errorf("table with control characters = %q, want %q", got, want)
	}
	if got := plain([]byte("a\x1b]0;t\x07b\r\n\xff")); got != "a]0;tb\n?" {
		t.Errorf("plain = %q, want \"a]0;tb\\n?\"", got)
	}
}

// TestConsoleLeaves verifies that Ctrl-] ends the bridge and is not sent.
func TestConsoleLeaves(t *testing.T) {
	near, far := net.Pipe()
	got := make(chan []byte, 1)
	go func() {
		buf := make([]byte, 4)
		_, _ = io.ReadFull(far, buf)
		_, _ = far.Write([]byte("welcome"))
		got <- buf
	}()
	keys, typist := io.Pipe()
	var out bytes.Buffer
	go func() {
		_, _ = typist.Write([]byte("keys"))
		<-got
		_, _ = typist.Write([]byte{leaveKey, 'x'})
	}()
	if err := bridge(t.Context(), near, keys, &out); err != nil {
		t.Fatal(err)
	}
	near.Close()
}

func TestCopyUntilLeave(t *testing.T) {
	var sent bytes.Buffer
	left, err := copyUntilLeave(&sent, strings.NewReader("ls\r\x1dnot this"))
	if !left || err != nil || sent.String() != "ls\r" {
		t.Errorf("copyUntilLeave of input with Ctrl-] = %v, %v, sent %q; want true, nil, \"ls\\r\"", left, err, sent.String())
	}
	sent.Reset()
	left, err = copyUntilLeave(&sent, strings.NewReader("script\n"))
	if left || err != nil || sent.String() != "script\n" {
		t.Errorf("copyUntilLeave of input without Ctrl-] = %v, %v, sent %q; want false, nil, \"script\\n\"", left, err, sent.String())
	}
}

// TestQuantities verifies that a quantity has three digits, however small it is.
func TestQuantities(t *testing.T) {
	for _, c := range []struct {
		meter api.Meter
		n     int64
		want  string
	}{
		{api.MeterGPU, 0, "0 GPU ns"},
		{api.MeterGPU, 999, "999 GPU ns"},
		{api.MeterGPU, 1_234_567, "1.23 GPU ms"},
		{api.MeterGPU, 3600e9, "1.00 GPU h"},
		{api.MeterVCPU, 59, "59 vCPU s"},
		{api.MeterVCPU, 90, "1.50 vCPU min"},
		{api.MeterVCPU, 3600 * 12345, "12345 vCPU h"},
		{api.MeterVRAM, 5 << 30, "5.00 GiB s"},
		{api.MeterMemory, 1 << 20, "1.00 MiB s"},
		{api.MeterVolume, 3600 * (4 << 30), "4.00 GiB h"},
		{api.MeterCopy, 0, "0 B"},
		{api.MeterEgress, 3 << 30, "3.00 GiB"},
		{api.MeterCopy, 10 << 20, "10.0 MiB"},
		{api.MeterLaunch, 7, "7"},
	} {
		if got := formatQuantity(c.meter, api.Units(c.n)); got != c.want {
			t.Errorf("formatQuantity(%s, %d) = %q, want %q", c.meter, c.n, got, c.want)
		}
	}
}

// TestTablesFit verifies that a narrow terminal gets tables without IDs, then with shortened
// cells.
func TestTablesFit(t *testing.T) {
	wide := func() table {
		return table{{"NAME", "NOTE", "AGE", "ID"}, {"demo", "no node fits: vm: 16 vCPUs requested", "1m", "ins-0123456789ab"}}
	}
	for width, want := range map[int]string{
		200: "NAME   NOTE                                   AGE   ID\ndemo   no node fits: vm: 16 vCPUs requested   1m    ins-0123456789ab\n",
		50:  "NAME   NOTE                                   AGE\ndemo   no node fits: vm: 16 vCPUs requested   1m\n",
		30:  "NAME   NOTE                AGE\ndemo   no node fits: vm…   1m\n",
		5:   "NAME   NOTE       AGE\ndemo   no node…   1m\n",
	} {
		if got := wide().fit(width).String(); got != want {
			t.Errorf("table in %d columns:\n%s\nwant:\n%s", width, got, want)
		}
	}
}
