package fence

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRequests(t *testing.T) {
	for _, c := range []struct {
		line string
		ok   bool
	}{
		{`{"v":1,"lease":{"until_boottime_ns":5,"node":"node-1","epoch":2}}`, true},
		{`{"v":1,"keep":[]}`, true},
		{`{"v":1,"keep":["ins-4f9c2a7be01d"]}`, true},
		{`{"v":1,"status":{}}`, true},
		{`{"v":1,"standdown":{}}`, true},
		{``, false},
		{`{}`, false},
		{`{"v":1}`, false},
		{`{"v":2,"status":{}}`, false},
		{`{"v":1,"status":{},"standdown":{}}`, false},
		{`{"v":1,"status":{}} {}`, false},
		{`{"v":1,"nonsense":{}}`, false},
		{`{"v":1,"keep":["a b"]}`, false},
		{`{"v":1,"keep":["` + strings.Repeat("a", maxID+1) + `"]}`, false},
		{`{"v":1,"keep":[` + strings.Repeat(`"a",`, maxKeep) + `"a"]}`, false},
		{`{"v":1,"lease":{"until_boottime_ns":-1}}`, false},
		{`{"v":1,"lease":{"until_boottime_ns":1e30}}`, false},
		{strings.Repeat(" ", maxLine) + `{"v":1,"status":{}}`, false},
	} {
		if _, err := DecodeRequest([]byte(c.line)); (err == nil) != c.ok {
			t.Errorf("DecodeRequest(%.80s): error %v, want success: %t", c.line, err, c.ok)
		}
	}
}

func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"v":1,"lease":{"until_boottime_ns":5,"node":"node-1","epoch":2}}`, `{"v":1,"keep":["ins-1"]}`,
		`{"v":1,"status":{}}`, `{"v":1,"standdown":{}}`, `{"v":1,"keep":null}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := DecodeRequest(b)
		if err != nil {
			return
		}
		again, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodeRequest(again); err != nil && len(again) <= maxLine {
			t.Errorf("request %s encoded again as %s: %v", b, again, err)
		}
		m := &machine{grace: DefaultGrace}
		if r.Lease != nil && m.setLease(sec, *r.Lease) == nil && m.lease.Until > sec+maxLease {
			t.Errorf("setLease accepted a lease until %s, want at most %s", m.lease.Until, sec+maxLease)
		}
	})
}

func TestInstanceOf(t *testing.T) {
	for line, want := range map[string]string{
		"/usr/bin/qemu-system-x86_64|-name|guest=basalt-ins-1,debug-threads=on|-S": "ins-1",
		"qemu-kvm|-S|-name|debug-threads=on,guest=basalt-ins-2":                    "ins-2",
		"qemu-kvm|-name|basalt-ins-3":                                              "ins-3",
		"qemu-kvm|--name|basalt-ins-4,process=x":                                   "ins-4",
		"qemu-kvm|-name|guest=other":                                               "",
		"qemu-kvm|-name|guest=basalt-":                                             "",
		"qemu-kvm|-name":                                                           "",
		"qemu-kvm|-append|guest=basalt-ins-5":                                      "",
		"-name|guest=basalt-ins-6":                                                 "",
		"":                                                                         "",
	} {
		if got := instanceOf(strings.Split(line, "|")); got != want {
			t.Errorf("instanceOf(%s) = %q, want %q", line, got, want)
		}
	}
}

func FuzzCmdline(f *testing.F) {
	f.Add("qemu\x00-name\x00guest=basalt-a,x")
	f.Fuzz(func(_ *testing.T, s string) { instanceOf(strings.Split(s, "\x00")) })
}
