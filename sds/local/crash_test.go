package local

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
	"github.com/basalt-gpu/basalt/sds/drivertest"
)

// crashDir is the environment variable that makes this binary the victim of
// TestKill.
const crashDir = "BASALT_TEST_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		if os.Getenv(crashLayers) != "" {
			layerWalkAndExit(dir)
		}
		if os.Getenv(crashSteps) != "" {
			walkAndExit(dir)
		}
		if node := os.Getenv(crowdNode); node != "" {
			member(dir, node)
		}
		victim(dir)
	}
	os.Exit(m.Run())
}

// victim creates and deletes images and volumes until it is killed. It prints
// what has been done.
func victim(dir string) {
	s, err := Open(Options{Dir: dir})
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	ctx := context.Background()
	for i := 0; ; i++ {
		img, vol := api.ImageID(fmt.Sprintf("img-%d", i)), api.VolumeID(fmt.Sprintf("vol-%d", i))
		_, err := s.ImportImage(ctx, sds.ImageImport{ID: img, Format: sds.Raw, Content: bytes.NewReader(drivertest.Raw(mib))})
		if err == nil {
			fmt.Println("done", img)
			_, err = s.CreateVolume(ctx, sds.VolumeCreate{ID: vol, Image: img})
		}
		if err == nil {
			fmt.Println("done", vol)
			_, err = s.ResizeVolume(ctx, vol, 3*mib, sds.Access{})
		}
		if err == nil && i%2 == 0 {
			fmt.Println("deleting", vol)
			if err = s.DeleteVolume(ctx, vol); err == nil {
				fmt.Println("deleted", vol)
			}
		}
		if err != nil {
			fmt.Println("failed", err)
			os.Exit(1)
		}
	}
}

// TestKill checks that a store that is killed at any moment has everything
// whose completion was reported, complete, and nothing incomplete.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes for some seconds")
	}
	needTools(t)
	done := 0
	for range 15 {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said, line := make(chan string, 1), make(chan struct{}, 1000)
		go func() { said <- readLines(out, line) }()
		for range rand.IntN(6) { // completed operations
			<-line
		}
		time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond) // to be at any point of the next
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		text := <-said
		_ = cmd.Wait()
		if strings.Contains(text, "failed") {
			t.Fatalf("the victim failed before it was killed: %s", text)
		}
		checkStore(t, dir, text)
		done += strings.Count(text, "done")
	}
	if done == 0 {
		t.Error("every victim was killed before its first operation, so this test proves nothing")
	}
}

// readLines reads to the end and sends for each line; it closes the channel at
// the end.
func readLines(from io.Reader, line chan struct{}) string {
	defer close(line)
	var all strings.Builder
	for r := bufio.NewReader(from); ; {
		text, err := r.ReadString('\n')
		all.WriteString(text)
		if err != nil {
			return all.String()
		}
		select {
		case line <- struct{}{}:
		default: // the receiver needs no more
		}
	}
}

// checkStore opens the store of a killed process and compares it with what the
// process had reported.
func checkStore(t *testing.T, dir, said string) {
	t.Helper()
	s := open(t, Options{Dir: dir}) // its clean-up checks for leftovers
	defer s.Close()
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
		if v.SizeBytes != mib && v.SizeBytes != 3*mib || !there[string(v.Image)] {
			t.Errorf("volume = %+v, want %d or %d bytes and an existing image", v, mib, 3*mib)
		}
		if out, err := exec.Command("qemu-img", "check", "-q", v.Source.Path).CombinedOutput(); err != nil {
			t.Errorf("qemu-img check of volume %s: %v: %s", v.ID, err, out)
		}
	}
	want := map[string]bool{}
	for line := range strings.Lines(said) {
		verb, id, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || !strings.HasSuffix(line, "\n") {
			continue
		}
		switch verb {
		case "done":
			want[id] = true
		case "deleting":
			delete(want, id) // it may exist or not
		case "deleted":
			want[id] = false
		}
	}
	for id, be := range want {
		if there[id] != be {
			t.Errorf("%s exists: %v, want %v as reported", id, there[id], be)
		}
	}
}
