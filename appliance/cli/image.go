package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/basalt-gpu/basalt/api"
)

func (a *App) images() *kind[api.Image] {
	k := &kind[api.Image]{
		app: a, noun: "image", about: "Disk images",
		columns: []string{"PHASE", "FORMAT", "SIZE", "DISK", "PUBLIC", "NOTE"}, row: imageRow,
		ready: imageReady, detail: imageDetail,
		flags: func(f *pflag.FlagSet) func(*api.Image) error {
			format := f.String("format", "", "qcow2, raw or iso (installation medium)")
			url := f.String("url", "", "URL from which the nodes download it")
			sum := f.String("sha256", "", "SHA-256 checksum")
			abilities := abilityFlags(f)
			public := f.Bool("public", false, "available to every project (operators)")
			user := f.String("default-user", "", "user that receives the SSH keys, e.g. debian")
			return func(i *api.Image) error {
				s := &i.Spec
				s.Format, s.URL, s.Sha256 = cmp.Or(*format, s.Format), cmp.Or(*url, s.URL), cmp.Or(*sum, s.Sha256)
				describeImage(f, s, *abilities, *user)
				if f.Changed("public") {
					s.Public = *public
				}
				return nil
			}
		},
	}
	k.more = []*cobra.Command{importCommand(k)}
	return k
}

func imageRow(i api.Image) []string {
	public := ""
	if i.Spec.Public {
		public = "yes"
	}
	note := i.Status.LastError
	if i.Status.Phase == api.ImageImporting && i.Status.SizeBytes > 0 {
		note = fmt.Sprintf("%d%%", 100*i.Status.ProgressBytes/i.Status.SizeBytes)
	}
	return []string{string(cmp.Or(i.Status.Phase, api.ImagePending)), i.Spec.Format, formatSize(i.Status.SizeBytes),
		formatSize(i.Status.VirtualBytes), public, note}
}

// imageDetail lists the known abilities of an image.
func imageDetail(i api.Image) detail {
	var d detail
	d.add("Operating system", strings.TrimSpace(string(i.Spec.Abilities.OS)+" "+i.Spec.Abilities.OSName))
	d.add("vGPU", string(i.Spec.Abilities.Vgpu))
	d.add("Guest agent", string(i.Spec.Abilities.GuestAgent))
	return d
}

func imageReady(i api.Image) (bool, string, error) {
	phase := cmp.Or(i.Status.Phase, api.ImagePending)
	if phase == api.ImageFailed {
		return false, string(phase), api.Errorf(api.CodeState, "image %s failed: %s", i.Meta.Name, i.Status.LastError)
	}
	return phase == api.ImageReady, string(phase), nil
}

func importCommand(k *kind[api.Image]) *cobra.Command {
	cmd := &cobra.Command{
		Use: "import NAME --file FILE | --url URL", Short: "Import a disk image or an installation medium", Args: cobra.ExactArgs(1),
		Long: "Uploads a file, or lets the nodes download a URL. Unless given, the checksum of a file is computed before the\n" +
			"upload and verified after it. Waits until the image is ready.",
	}
	f := cmd.Flags()
	file := f.String("file", "", "file to send")
	url := f.String("url", "", "URL from which the nodes download it")
	sum := f.String("sha256", "", "SHA-256 checksum")
	format := f.String("format", "", "qcow2, raw or iso (installation medium); detected if not given")
	abilities := abilityFlags(f)
	public := f.Bool("public", false, "available to every project (operators)")
	user := f.String("default-user", "", "user that receives the SSH keys, e.g. debian")
	w := waiting{}
	addWaitFlags(cmd, &w)
	f.Lookup("wait").DefValue = "true"
	w.wait = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if (*file == "") == (*url == "") {
			return usagef("--file or --url is required")
		}
		q := k.query()
		image := api.Image{Meta: api.Meta{Name: args[0], Organization: q.Organization, Project: q.Project},
			Spec: api.ImageSpec{Format: *format, URL: *url, Sha256: strings.ToLower(*sum), Public: *public, Abilities: *abilities, DefaultUser: *user}}
		var err error
		if *file == "" {
			if image.Spec.Format == "" {
				image.Spec.Format = formatOfName(*url)
			}
			image, err = k.objects().Create(cmd.Context(), image)
		} else {
			image, err = sendImage(cmd.Context(), k, image, *file)
		}
		if err == nil {
			image, err = k.await(cmd.Context(), image, w)
		}
		if err != nil {
			return err
		}
		return k.printOne(cmd.Context(), image)
	}
	return cmd
}

// abilityFlags declares the flags for an image's abilities; the server validates them.
func abilityFlags(f *pflag.FlagSet) *api.ImageAbilities {
	a := &api.ImageAbilities{}
	f.StringVar((*string)(&a.Vgpu), "vgpu", "", "whether its kernel can use a vGPU: supported, new-kernel (the guest tools replace it) or unsupported")
	f.StringVar((*string)(&a.GuestAgent), "guest-agent", "", "whether it has a guest agent: present or absent")
	f.StringVar((*string)(&a.OS), "os", "", "its operating system: linux, windows (decides the machine of new instances) or other")
	f.StringVar(&a.OSName, "os-name", "", "name and version of its operating system, e.g. \"Windows Server 2025\"")
	return a
}

// describeImage sets what the flags declare about an image; an empty value clears it.
func describeImage(f *pflag.FlagSet, s *api.ImageSpec, abilities api.ImageAbilities, user string) {
	if f.Changed("vgpu") {
		s.Abilities.Vgpu = abilities.Vgpu
	}
	if f.Changed("guest-agent") {
		s.Abilities.GuestAgent = abilities.GuestAgent
	}
	if f.Changed("os") {
		s.Abilities.OS = abilities.OS
	}
	if f.Changed("os-name") {
		s.Abilities.OSName = abilities.OSName
	}
	if f.Changed("default-user") {
		s.DefaultUser = user
	}
}

func formatOfName(name string) string {
	if strings.HasSuffix(name, ".iso") {
		return api.FormatISO
	}
	if strings.HasSuffix(name, ".raw") || strings.HasSuffix(name, ".img") {
		return api.FormatRaw
	}
	return api.FormatQCOW2
}

// sendImage creates the image and uploads a file as its content. If the upload fails, it
// deletes the image again.
func sendImage(ctx context.Context, k *kind[api.Image], image api.Image, path string) (api.Image, error) {
	file, err := os.Open(path)
	if err != nil {
		return image, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return image, err
	}
	if !info.Mode().IsRegular() {
		return image, usagef("%s is not a regular file", path)
	}
	head := make([]byte, 4)
	n, _ := io.ReadFull(file, head)
	if image.Spec.Format == "" {
		image.Spec.Format = api.FormatRaw
		if strings.HasSuffix(path, ".iso") {
			image.Spec.Format = api.FormatISO
		}
		if string(head[:n]) == "QFI\xfb" { // QEMU's docs/interop/qcow2: magic bytes
			image.Spec.Format = api.FormatQCOW2
		}
	}
	if image.Spec.Sha256 == "" {
		if image.Spec.Sha256, err = k.app.checksum(file, info.Size()); err != nil {
			return image, err
		}
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return image, err
	}
	if image, err = k.objects().Create(ctx, image); err != nil {
		return image, err
	}
	bar := k.app.progress("sending "+image.Meta.Name, info.Size())
	sent, err := k.app.api.PutImageContent(ctx, image.Meta.ID, io.TeeReader(file, bar), info.Size())
	bar.end()
	if err != nil {
		if _, cleanup := k.objects().Delete(context.WithoutCancel(ctx), image.Meta.ID); cleanup != nil {
			fmt.Fprintf(k.app.Err, "delete incomplete image %s failed: %v\n", image.Meta.Name, cleanup)
		}
		return image, err
	}
	return sent, nil
}

func (a *App) checksum(file io.ReadSeeker, size int64) (string, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	sum := sha256.New()
	bar := a.progress("reading", size)
	_, err := io.Copy(io.MultiWriter(sum, bar), file)
	bar.end()
	return hex.EncodeToString(sum.Sum(nil)), err
}
