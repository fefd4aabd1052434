package libvirt

import (
	"encoding/json"
	"testing"
)

// FuzzExecStatus: the guest answers what it likes; what is kept stays within
// the limit.
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
			t.Errorf("%d and %d bytes are more than %d", len(r.Stdout), len(r.Stderr), limit)
		}
	})
}

func TestExecStatus(t *testing.T) {
	r, err := execStatus{Exited: true, ExitCode: 3, Out: "aGVsbG8=", Err: "eA=="}.result(4)
	if err != nil || string(r.Stdout) != "hell" || string(r.Stderr) != "x" || !r.Truncated || r.ExitCode != 3 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := (execStatus{Exited: true, Out: "no base64"}).result(10); err == nil {
		t.Error("output that is not base64 was taken")
	}
}
