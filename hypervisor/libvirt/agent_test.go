package libvirt

import (
	"encoding/json"
	"testing"
)

// FuzzExecStatus checks that the stored output stays within the limit for any
// response of the guest.
func FuzzExecStatus(f *testing.F) {
	f.Add([]byte(`{"exited":true,"exitcode":1,"out-data":"aGVsbG8=","err-data":"","out-truncated":true}`), 3)
	f.Add([]byte(`{"exited":true,"signal":9,"out-data":"!"}`), 0)
	f.Fuzz(func(t *testing.T, raw []byte, limit int) {
		limit &= 0xffff
		var st execStatus
		if json.Unmarshal(raw, &st) != nil {
			return
		}
		r, err := st.result(limit)
		if err == nil && (len(r.Stdout) > limit || len(r.Stderr) > limit) {
			t.Errorf("output has %d and %d bytes, want at most %d", len(r.Stdout), len(r.Stderr), limit)
		}
	})
}

func TestExecStatus(t *testing.T) {
	r, err := execStatus{Exited: true, ExitCode: 3, Out: "aGVsbG8=", Err: "eA=="}.result(4)
	if err != nil || string(r.Stdout) != "hell" || string(r.Stderr) != "x" || !r.Truncated || r.ExitCode != 3 {
		t.Errorf("result = %+v, %v, want hell, x, truncated and exit code 3", r, err)
	}
	if _, err := (execStatus{Exited: true, Out: "no base64"}).result(10); err == nil {
		t.Error("result of output that is not base64 = nil, want an error")
	}
}
