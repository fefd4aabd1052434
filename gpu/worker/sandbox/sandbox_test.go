package sandbox

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"strings"
	"syscall"
	"testing"
)

// TestMain runs the tests. The test binary is also the program in the sandbox,
// which prints its identity, names a thread as libcuda does, and waits for the
// end of its input.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "inside" {
		groups, _ := os.Getgroups()
		net, _ := os.ReadFile("/proc/net/dev")
		if err := os.WriteFile(fmt.Sprintf("/proc/self/task/%d/comm", syscall.Gettid()), []byte("named"), 0); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("uid %d gid %d groups %v interfaces %d\n", os.Getuid(), os.Getgid(), groups, strings.Count(string(net), ":"))
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func inside(t *testing.T, j Sandbox) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", "inside") // the user may not have access to the path
	cmd.SysProcAttr = j.Apply(&syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL})
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("program in the sandbox: %v\n%s", err, out)
	}
	return string(out)
}

func TestWorkersRunAsAnother(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		t.Skip(err)
	}
	j, open, err := For("nobody")
	if err != nil {
		t.Fatal(err)
	}
	got := inside(t, j)
	if want := fmt.Sprintf("uid %s gid %s groups [%s]", nobody.Uid, nobody.Gid, nobody.Gid); !strings.HasPrefix(got, want) {
		t.Errorf("program in the sandbox printed %q, want %q at the beginning", got, want)
	}
	if open == "" && !strings.HasSuffix(got, "interfaces 1\n") {
		t.Errorf("program in the sandbox printed %q, want one network interface", got)
	}
	if byNumber, _, err := For(nobody.Uid); err != nil || byNumber.User.Uid != j.User.Uid {
		t.Errorf("For(%s) = %+v, %v, want UID %d", nobody.Uid, byNumber, err, j.User.Uid)
	}
}

func TestDefault(t *testing.T) {
	j, open, err := For("")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := user.Lookup(DefaultUser); (err != nil || os.Geteuid() != 0) != (j.User == nil) {
		t.Errorf("sandbox = %+v, want a user only as root and if %s exists", j, DefaultUser)
	}
	if j.User == nil && open == "" {
		t.Error("open is empty, want that workers run as this user")
	}
}

func TestNoSuchUser(t *testing.T) {
	if _, _, err := For("no-such-user"); err == nil {
		t.Error("For of an unknown user returned no error")
	}
}
