package local

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/appliance/test/kit/patience"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/drivertest"
)

// crowdNode is the environment variable that, with crashDir, makes this binary
// one of the nodes of TestConcurrentNodes.
const crowdNode = "BASALT_TEST_CROWD_NODE"

const (
	claimed     = api.VolumeID("vol-claimed") // claimed by all nodes
	crowdImages = 3
)

// member performs all operations at random until it is killed, and prints what
// has been done.
func member(dir, node string) {
	s, err := Open(Options{Dir: dir, Shared: true, LeftoverAge: 100 * time.Millisecond})
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	m := &crowdMember{s: s, node: api.NodeID(strings.SplitN(node, ".", 2)[0]), name: strings.ReplaceAll(node, ".", "-")}
	for i := 0; ; i++ {
		m.step(i)
	}
}

type crowdMember struct {
	s    *Store
	node api.NodeID
	name string
}

// must ends the process with a message if err is none of the codes.
func (m *crowdMember) must(what string, err error, codes ...api.Code) {
	for _, c := range codes {
		if err != nil && api.CodeOf(err) == c {
			return
		}
	}
	if err != nil {
		fmt.Println("failed", what, err)
		os.Exit(1)
	}
}

func (m *crowdMember) step(i int) {
	ctx := context.Background()
	img := api.ImageID(fmt.Sprintf("img-%d", rand.IntN(crowdImages)))
	_, err := m.s.ImportImage(ctx, sds.ImageImport{ID: img, Format: sds.Raw, Content: bytes.NewReader(drivertest.Raw(mib))})
	m.must("import", err, api.CodeNotFound) // deleted between its creation and the query
	mine := api.VolumeID(fmt.Sprintf("vol-%s-%d", m.name, i))
	_, err = m.s.CreateVolume(ctx, sds.VolumeCreate{ID: mine, Image: img})
	m.must("create", err, api.CodeNotFound) // the image was deleted again
	if err == nil {
		fmt.Println("done", mine)
		_, err = m.s.ResizeVolume(ctx, mine, 3*mib, sds.Access{})
		m.must("resize", err)
	}
	if i%3 != 0 {
		fmt.Println("deleting", mine)
		m.must("delete", m.s.DeleteVolume(ctx, mine))
		fmt.Println("deleted", mine)
	}
	common := api.VolumeID(fmt.Sprintf("vol-common-%d", rand.IntN(2)))
	_, err = m.s.RecreateVolume(ctx, sds.VolumeCreate{ID: common, SizeBytes: mib, Epoch: int64(i)})
	m.must("recreate", err, api.CodeState, api.CodeNotFound)
	if rand.IntN(4) == 0 {
		m.must("delete common", m.s.DeleteVolume(ctx, common), api.CodeInUse) // its creator was killed and qemu-img is ending
	}
	if rand.IntN(3) == 0 {
		m.must("delete image", m.s.DeleteImage(ctx, img), api.CodeInUse)
	}
	_, err = m.s.Volumes(ctx)
	m.must("list", err)
	m.claim(ctx)
}

func (m *crowdMember) claim(ctx context.Context) {
	now, err := m.s.Owner(ctx, claimed)
	m.must("owner", err)
	want := sds.Owner{Node: m.node, Epoch: now.Epoch + 1}
	err = m.s.ClaimVolume(ctx, claimed, want)
	m.must("claim", err, api.CodeState)
	if err == nil {
		fmt.Println("claimed", want.Epoch)
	}
}

// TestConcurrentNodes runs four nodes on one pool, killed and frozen at any moment: what
// was reported as done exists, nothing is incomplete, no volume lacks its
// image, and no epoch of a volume has two owners.
func TestConcurrentNodes(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes for some seconds")
	}
	needTools(t)
	dir := t.TempDir()
	s := open(t, Options{Dir: dir, Shared: true})
	if _, err := s.CreateVolume(t.Context(), sds.VolumeCreate{ID: claimed, SizeBytes: mib}); err != nil {
		t.Fatal(err)
	}
	if err := s.ClaimVolume(t.Context(), claimed, sds.Owner{Node: "node-test", Epoch: 1}); err != nil {
		t.Fatal(err)
	}
	said := map[string]string{} // by node and incarnation
	running := make([]*process, 4)
	for i := range running {
		running[i] = startMember(t, dir, fmt.Sprintf("node-%d.0", i))
	}
	for round := 1; round <= 24; round++ {
		i := rand.IntN(len(running))
		p := running[i]
		if rand.IntN(5) > 0 { // otherwise while it starts
			p.awaitLines(t, 1+rand.IntN(4)) // of operations
		}
		time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond) // to be at any point of the next
		if round%3 == 0 {
			p.signal(t, syscall.SIGSTOP)
			time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // while the node is frozen
			p.signal(t, syscall.SIGCONT)
			continue
		}
		said[p.node] = p.kill(t)
		running[i] = startMember(t, dir, fmt.Sprintf("node-%d.%d", i, round))
	}
	for _, p := range running {
		said[p.node] = p.kill(t)
	}
	checkCrowd(t, dir, said)
}

type process struct {
	node string
	cmd  *exec.Cmd
	said chan string // the whole output, when it has ended
	line chan struct{}
}

func startMember(t *testing.T, dir, node string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir, crowdNode+"="+node)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &process{node: node, cmd: cmd, said: make(chan string, 1), line: make(chan struct{}, 1000)}
	go func() {
		p.said <- readLines(out, p.line)
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return p
}

// awaitLines waits until the process has printed n more lines.
func (p *process) awaitLines(t *testing.T, n int) {
	t.Helper()
	for len(p.line) > 0 {
		<-p.line // earlier lines
	}
	limit := patience.After(time.Minute)
	for range n {
		select {
		case <-p.line:
		case <-limit:
			t.Fatalf("%s printed nothing for a minute", p.node)
		}
	}
}

func (p *process) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("send %v to %s: %v: %s", sig, p.node, err, <-p.said)
	}
}

func (p *process) kill(t *testing.T) string {
	t.Helper()
	p.signal(t, syscall.SIGKILL)
	text := <-p.said
	_ = p.cmd.Wait()
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "failed") {
			t.Errorf("%s failed before it was killed: %s", p.node, line)
		}
	}
	return text
}

func checkCrowd(t *testing.T, dir string, said map[string]string) {
	t.Helper()
	// A new node sweeps what all dead ones left, once it is old enough.
	swept, err := Open(Options{Dir: dir, Shared: true, LeftoverAge: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	if err := swept.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	s := open(t, Options{Dir: dir, Shared: true})
	for _, pattern := range []string{"*/.new-*", "*/.old-*"} {
		if left, _ := filepath.Glob(filepath.Join(dir, pattern)); len(left) > 0 {
			t.Errorf("left behind: %v, want nothing", left)
		}
	}
	there := map[string]bool{}
	imgs, err := s.Images(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, img := range imgs {
		there[string(img.ID)] = true
		if got, err := os.ReadFile(img.Path); err != nil || !bytes.Equal(got, drivertest.Raw(mib)) {
			t.Errorf("image %s is incomplete (%v)", img.ID, err)
		}
	}
	vols, err := s.Volumes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range vols {
		there[string(v.ID)] = true
		if v.Image != "" && !there[string(v.Image)] {
			t.Errorf("image %s of volume %s does not exist", v.Image, v.ID)
		}
		if out, err := exec.Command("qemu-img", "check", "-q", v.Source.Path).CombinedOutput(); err != nil {
			t.Errorf("qemu-img check of volume %s: %v: %s", v.ID, err, out)
		}
	}
	want, owners, done, top := map[string]bool{}, map[int64]string{}, 0, int64(1)
	for node, text := range said {
		for line := range strings.Lines(text) {
			verb, what, ok := strings.Cut(strings.TrimSpace(line), " ")
			if !ok || !strings.HasSuffix(line, "\n") {
				continue
			}
			switch verb {
			case "done":
				want[what], done = true, done+1
			case "deleting":
				delete(want, what)
			case "deleted":
				want[what] = false
			case "claimed":
				epoch, err := strconv.ParseInt(what, 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				name, _, _ := strings.Cut(node, ".")
				if other, ok := owners[epoch]; ok && other != name {
					t.Errorf("epoch %d was claimed by %s and by %s, want one owner", epoch, other, name)
				}
				owners[epoch], top = name, max(top, epoch)
			}
		}
	}
	for id, be := range want {
		if there[id] != be {
			t.Errorf("%s exists: %v, want %v as reported", id, there[id], be)
		}
	}
	// The highest claim may be one whose node was killed before it could report
	// it.
	owner, err := s.Owner(t.Context(), claimed)
	if err != nil || owner.Epoch < top || owner.Epoch == top && string(owner.Node) != owners[top] {
		t.Errorf("Owner = %+v, %v, want at least the last reported one, %s in epoch %d", owner, err, owners[top], top)
	}
	if done < 20 || len(owners) < 20 {
		t.Errorf("%d volumes and %d claims, want at least 20 each: this test proves nothing", done, len(owners))
	}
	t.Logf("%d volumes, %d claims, %d processes", done, len(owners), len(said))
}
