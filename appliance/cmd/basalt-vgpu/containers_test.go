package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/basalt-gpu/basalt/appliance/test/kit/built"
	"github.com/basalt-gpu/basalt/appliance/test/kit/layer"
	"github.com/basalt-gpu/basalt/appliance/test/kit/tree"
	"github.com/basalt-gpu/basalt/gpu/vhostgpu/testguest"
)

// begin installs the tools as a tenant does, and creates images from files of the guest: one
// with glibc and a CUDA program, which has its own libcudart, and one with musl. The images
// contain nothing of the driver.
const begin = `
cp -r /test/tools /tmp/tools
step install sh /tmp/tools/install.sh
step restart systemctl restart docker
r=/tmp/glibc
mkdir -p $r/bin $r/app/bin $r/app/lib $r/tmp $r/lib64 $r/lib/x86_64-linux-gnu
cp /bin/busybox $r/bin/
ln -s busybox $r/bin/sh
cp /test/tools/demo/vecadd /test/cudart $r/app/bin/
cp /test/tools/lib/libcudart.so.12 $r/app/lib/
cp -L /lib64/ld-linux-x86-64.so.2 $r/lib64/
(cd /lib/x86_64-linux-gnu && cp -L libc.so.6 libm.so.6 libpthread.so.0 libdl.so.2 $r/lib/x86_64-linux-gnu/)
m=/tmp/musl
mkdir -p $m/bin $m/lib
cp /bin/busybox $m/bin/
cp -L /lib/ld-musl-x86_64.so.1 $m/lib/
for i in glibc musl; do
	tar -C /tmp/$i -cf /tmp/$i.tar .
	step podman-import-$i podman import -q /tmp/$i.tar $i
	step docker-import-$i docker import /tmp/$i.tar $i
done
`

// contained is a command that a tenant runs in the guest.
type contained struct {
	name, command string
	fails         bool
	want          string
}

const vecaddOK = "max error 0, OK"

// podman returns the commands with Podman's containers, of root and of another user.
func podman() []contained {
	const run = "podman run --rm --network none "
	const rootless = "podman run --rm --network none --device nvidia.com/gpu=all localhost/glibc "
	return []contained{
		{"podman-vecadd", run + "--device nvidia.com/gpu=all glibc /app/bin/vecadd", false, vecaddOK},
		{"podman-user", run + "--device nvidia.com/gpu=0 --user 1000:1000 --read-only glibc /app/bin/vecadd", false, vecaddOK},
		{"podman-smi", run + "--device nvidia.com/gpu=all glibc nvidia-smi", false, "Basalt Test"},
		{"podman-cudart", run + "--device nvidia.com/gpu=all -e LD_LIBRARY_PATH=/app/lib glibc /app/bin/cudart", false, "bad: 12: OK"},
		{"podman-musl", run + "--device nvidia.com/gpu=all musl nvidia-smi", true, "this image has no GNU C library"},
		{"podman-none", run + "glibc /app/bin/vecadd", true, "libcuda.so.1: cannot open shared object file"},
		{"podman-wrong", run + "--device nvidia.com/gpu=7 glibc /app/bin/vecadd", true, "nvidia.com/gpu=7"},
		{"rootless-import", `su - tenant -c "podman import -q /tmp/glibc.tar glibc"`, false, ""},
		{"rootless-vecadd", `su - tenant -c "` + rootless + `/app/bin/vecadd"`, false, vecaddOK},
		{"rootless-smi", `su - tenant -c "` + rootless + `nvidia-smi -L"`, false, "GPU 0: "},
	}
}

// docker returns the commands with Docker's containers.
func docker() []contained {
	const run = "docker run --rm --network none "
	return []contained{
		{"docker-smi", run + "--gpus all glibc nvidia-smi", false, "Basalt Test"},
		{"docker-vecadd", run + "--gpus all glibc /app/bin/vecadd", false, vecaddOK},
		{"docker-device", run + `--gpus '"device=0"' --user 1000:1000 --read-only glibc /app/bin/vecadd`, false, vecaddOK},
		{"docker-utility", run + "--gpus all,capabilities=utility glibc nvidia-smi -L", false, "GPU 0: "},
		{"docker-cudart", run + "--gpus all -e LD_LIBRARY_PATH=/app/lib glibc /app/bin/cudart", false, "bad: 12: OK"},
		{"docker-exec", "docker run -d --name long --network none --gpus all glibc /bin/busybox sleep 1000 && docker exec long /app/bin/vecadd; e=$?; docker rm -f long; (exit $e)", false, vecaddOK},
		{"docker-two", run + "--gpus 2 glibc /app/bin/vecadd", true, "this machine has one GPU: 0, or all"},
		{"docker-void", run + "-e NVIDIA_VISIBLE_DEVICES=all glibc /app/bin/vecadd", true, "libcuda.so.1: cannot open shared object file"},
		{"docker-nvidia", run + "--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=all glibc /app/bin/vecadd", false, vecaddOK},
		{"docker-nvidia-none", run + "--runtime nvidia -e NVIDIA_VISIBLE_DEVICES=none -e BASALT_VERBOSE=1 glibc /app/bin/vecadd", true, "no Basalt vGPU among 0 render nodes"},
		{"docker-runc", run + "--runtime runc --gpus all glibc /app/bin/vecadd", true, "add --runtime basalt to docker run"},
		{"docker-musl", run + "--gpus all musl nvidia-smi", true, "this image has no GNU C library"},
	}
}

// changes returns the commands for what happens after an installation: a vGPU that is removed
// and added, a boot, a second installation, and the deregistration.
func changes() []contained {
	// The last PCI address in its device path.
	const node = "d=$(readlink -f /sys/class/drm/renderD128 | grep -o '0000:[0-9a-f:.]*' | tail -n 1); echo $d >/run/vgpu; "
	return []contained{
		{"unbind", node + "echo $d >/sys/bus/pci/drivers/virtio-pci/unbind; udevadm settle; ! test -e /run/cdi/basalt.json", false, ""},
		{"podman-gone", "podman run --rm --network none --device nvidia.com/gpu=all glibc /app/bin/vecadd", true, "nvidia.com/gpu=all"},
		{"docker-gone", "docker run --rm --network none --gpus all glibc /app/bin/vecadd", true, "this machine has no vGPU: /dev/dri has no render nodes"},
		{"bind", "cat /run/vgpu >/sys/bus/pci/drivers/virtio-pci/bind; udevadm settle; cat /run/cdi/basalt.json", false, `"/dev/dri/renderD128"`},
		{"podman-again", "podman run --rm --network none --device nvidia.com/gpu=all glibc /app/bin/vecadd", false, vecaddOK},
		// The trigger of systemd-udev-trigger.service at a boot, when /run is empty.
		{"boot", "rm /run/cdi/basalt.json; udevadm trigger --type=devices --action=add --subsystem-match=drm; udevadm settle; cat /run/cdi/basalt.json", false, `"all"`},
		{"second", "basalt-container docker off; sh /tmp/tools/install.sh && ! test -e /etc/docker/daemon.json", false, "guest tools"},
		{"on-again", "BASALT_DOCKER=on sh /tmp/tools/install.sh && grep basalt-container-runtime /etc/docker/daemon.json", false, "basalt-container-runtime"},
	}
}

// TestContainers runs containers with the vGPU on Debian's Podman and Docker.
// BASALT_GUEST_SUITE selects another release than this machine's.
func TestContainers(t *testing.T) {
	layer.NeedLong(t, "gpu/guest/container TestBundles")
	if os.Geteuid() != 0 {
		t.Skip("creating the guest's root file system needs root")
	}
	script := filepath.Join(tree.Top(), "gpu/guest/container/testguest/build.sh")
	suite := os.Getenv("BASALT_GUEST_SUITE")
	if suite == "" {
		suite = thisSuite(t)
	}
	if out, err := exec.Command(script, suite).CombinedOutput(); err != nil {
		t.Fatalf("build the guest: %v\n%s", err, out)
	}
	tools, tests := built.Guest(t)
	files := map[string]string{"/cudart": filepath.Join(tests, "bad-12")}
	if err := filepath.WalkDir(tools, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files["/tools/"+strings.TrimPrefix(path, tools+"/")] = path
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var run strings.Builder
	run.WriteString("export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root\ncd /tmp\n" +
		"step() { n=$1; shift; \"$@\"; echo \"exit of $n: $?\"; }\necho begun; docker version; podman --version\n" + begin)
	all := append(append(podman(), docker()...), changes()...)
	for _, c := range all {
		fmt.Fprintf(&run, "( %s ) 2>&1; echo \"exit of %s: $?\"\n", c.command, c.name)
	}
	n := startNode(t, built.Program(t, "appliance/cmd/basalt-worker"))
	g := testguest.Boot(t, testguest.Options{VGPU: n.socket, Files: files, MemoryMiB: 2048, Run: run.String(),
		System: filepath.Join(testguest.BuildDir(t), "containerguest", suite)})
	g.Expect("begun")
	for _, name := range []string{"install", "restart", "podman-import-glibc", "docker-import-glibc", "podman-import-musl", "docker-import-musl"} {
		if out := g.Expect(`(?s).*?exit of ` + name + `: \d+`); !strings.HasSuffix(out, ": 0") {
			t.Fatalf("step %s failed, want exit status 0: %s", name, out)
		}
	}
	for _, c := range all {
		out := g.Expect(`(?s).*?exit of ` + regexp.QuoteMeta(c.name) + `: \d+`)
		if strings.HasSuffix(out, ": 0") == c.fails || !strings.Contains(out, c.want) {
			t.Errorf("output of %s:\n%s\nwant %q, and failure = %t", c.command, out, c.want, c.fails)
		}
	}
	n.until("gpud has no processes", func() bool { return len(n.state().Processes) == 0 })
}

// thisSuite returns the codename of this machine's Debian.
func thisSuite(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/etc/os-release")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^VERSION_CODENAME=(\w+)$`).FindSubmatch(text)
	if m == nil {
		t.Fatal("/etc/os-release has no VERSION_CODENAME")
	}
	return string(m[1])
}
