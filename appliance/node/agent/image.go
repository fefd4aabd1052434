package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"sync"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/sds"
)

// imageReconciler imports images, and fetches those that this node needs.
type imageReconciler struct {
	*core
	reporter *reporter

	mu      sync.Mutex
	running map[string]bool // images being imported
}

// reconcile imports an image if that is this node's task: an image with a URL is
// fetched by the node that it is assigned to, one without waits until its content
// is uploaded to any node (put). Then each voter fetches a copy, so that the loss
// of one node does not lose the only copy; other nodes fetch what their volumes
// need (fetch.go).
//
//	Pending ─► Importing ─► Ready ─► deleted: every node its own copy; the importing
//	               │          ▲     node removes the finalizer, or when it is
//	               ▼          │     lost the one on duty
//	             Failed ──────┘ tried again (retry.go)
func (rec *imageReconciler) reconcile(ctx context.Context, id string) (time.Duration, error) {
	img, ok := get(rec.cache, rec.cache.images, id)
	if !ok {
		return 0, nil
	}
	if img.Meta.DeletedAt != nil {
		return rec.end(ctx, img)
	}
	if img.Status.Phase == api.ImageReady {
		return rec.copyToVoter(ctx, img)
	}
	mine := img.Assignment.Node == rec.o.NodeID || img.Assignment.Node == "" && rec.members.alone()
	if img.Spec.URL == "" {
		return 0, rec.awaitUpload(ctx, img)
	}
	if !mine {
		return 0, nil
	}
	if have, _, err := rec.find(ctx, api.ImageID(id)); err == nil {
		return 0, rec.writeStatus(ctx, img, ready(have, rec.o.NodeID))
	}
	if wait, held := rec.hold(img.Status.Retry, rec.triedImport(img), retryThere); held {
		return wait, nil
	}
	err := rec.jobs.startImport(ctx, img.Meta.Organization, "import "+id, key(api.KindImage, id), func(ctx context.Context) error {
		err := rec.importImage(ctx, img, sds.ImageImport{URL: img.Spec.URL})
		var f *importFailed
		if errors.As(err, &f) && f.reported { // the status has the time of the next attempt
			rec.log.Warn("import image failed", "id", id, "error", err)
			return nil
		}
		return err
	})
	return time.Second, err
}

// importFailed is the failure of an import, which the image's status may have less of.
type importFailed struct {
	error
	reported bool // the image's status has been written
}

func (f *importFailed) Unwrap() error { return f.error }

// failedImport returns the status after an import has failed. A failed download is
// tried again, unless the error is permanent.
func (rec *imageReconciler) failedImport(img api.Image, err error) api.ImageStatus {
	why := reasonOf(err)
	st := api.ImageStatus{Phase: api.ImageFailed, Node: rec.o.NodeID, LastError: why.Text, Cause: why.Cause}
	of := rec.triedImport(img)
	switch code := api.CodeOf(err); {
	case img.Spec.URL == "": // the content has to be uploaded again
	case code == api.CodeUnavailable || code == api.CodeInternal:
		st.Retry = img.Status.Retry.After(img.Meta.ID, of, rec.o.Now(), retryThere)
	default:
		st.Retry = img.Status.Retry.Last(of)
	}
	return st
}

// triedImport returns what an attempt of the import belongs to. A node that is
// alone starts before the planner assigns the image to it: that is the same
// attempt.
func (rec *imageReconciler) triedImport(img api.Image) string {
	as := img.Assignment
	if as.Node == "" {
		as.Node = rec.o.NodeID
	}
	return api.Tried(img.Meta, as)
}

// awaitUpload resets the status of an upload that a restart has ended, or whose
// node is lost: the content must be uploaded again.
func (rec *imageReconciler) awaitUpload(ctx context.Context, img api.Image) error {
	id := api.ImageID(img.Meta.ID)
	st := img.Status
	began := st.Phase == api.ImageImporting
	switch {
	case began && st.Node == rec.o.NodeID:
		if rec.importing(img.Meta.ID) {
			return nil
		}
		if have, _, err := rec.find(ctx, id); err == nil {
			return rec.writeStatus(ctx, img, ready(have, rec.o.NodeID))
		}
	case began && rec.members.away(st.Node), st.Phase == "":
		if !rec.members.onDuty() {
			return nil
		}
	default:
		return nil
	}
	// The status is written at the revision that was read, and not retried as
	// writeStatus does: meanwhile another node may have received an upload.
	return rec.report(ctx, api.KindImage, img.Meta.ID, img.Meta.Revision, api.ImageStatus{Phase: api.ImagePending})
}

// end deletes this node's copies of the image.
func (rec *imageReconciler) end(ctx context.Context, img api.Image) (time.Duration, error) {
	id := api.ImageID(img.Meta.ID)
	if rec.jobs.stop("import " + img.Meta.ID) {
		return time.Second, nil
	}
	for name, p := range rec.pools.inOrder() {
		err := p.DeleteImage(ctx, id)
		if api.CodeOf(err) == api.CodeInUse { // volumes based on it are being deleted
			return time.Second, nil
		}
		if err != nil && api.CodeOf(err) != api.CodeNotFound {
			return 0, fmt.Errorf("delete image %s from pool %s: %w", id, name, err)
		}
	}
	if img.Status.Node != "" && !rec.members.away(img.Status.Node) {
		if img.Status.Node != rec.o.NodeID {
			return 0, nil
		}
	} else if !rec.members.onDuty() {
		return 0, nil
	}
	return 0, rec.forget(ctx, api.KindImage, img.Meta.ID)
}

// put stores an image's content that a client uploads.
func (rec *imageReconciler) put(ctx context.Context, id api.ImageID, content io.Reader) error {
	o, err := rec.read(ctx, api.KindImage, string(id))
	if err != nil {
		return err
	}
	rec.mergeObject(o)
	img, err := api.Decode[api.Image](o)
	if err != nil {
		return err
	}
	switch {
	case img.Status.Phase == api.ImageReady:
		return api.Errorf(api.CodeState, "image %s is already imported", img.Meta.Name).WithHint("import it with another name")
	case img.Status.Phase == api.ImageImporting && img.Status.Node != rec.o.NodeID && !rec.members.away(img.Status.Node):
		return api.Errorf(api.CodeState, "image %s is being copied to another node", img.Meta.Name)
	}
	err = rec.importImage(ctx, img, sds.ImageImport{Content: content})
	var f *importFailed
	if errors.As(err, &f) {
		rec.log.Warn("import image failed", "id", id, "error", err) // clients are told less
	}
	return err
}

func (rec *imageReconciler) importing(id string) bool {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.running[id]
}

func (rec *imageReconciler) importImage(ctx context.Context, img api.Image, in sds.ImageImport) error {
	id := img.Meta.ID
	rec.mu.Lock()
	if rec.running[id] {
		rec.mu.Unlock()
		return api.Errorf(api.CodeState, "image %s is already being imported", img.Meta.Name)
	}
	rec.running[id] = true
	rec.mu.Unlock()
	defer func() {
		rec.mu.Lock()
		delete(rec.running, id)
		rec.mu.Unlock()
	}()

	again := img.Spec.URL != "" && img.Status.Retry.Applies(rec.triedImport(img)) // a repeated import stays Failed until it succeeds
	if !again {
		if err := rec.writeStatus(ctx, img, api.ImageStatus{Phase: api.ImageImporting, Node: rec.o.NodeID}); err != nil {
			return err
		}
	}
	last := rec.o.Now()
	in.ID, in.Format, in.SHA256 = api.ImageID(id), sds.Format(img.Spec.Format), img.Spec.Sha256
	in.Progress = func(n int64) {
		if now := rec.o.Now(); !again && now.Sub(last) >= 2*time.Second {
			last = now
			if err := rec.writeStatus(ctx, img, api.ImageStatus{Phase: api.ImageImporting, Node: rec.o.NodeID, ProgressBytes: n}); err != nil {
				rec.log.Warn("report image status failed", "id", id, "error", err)
			}
		}
	}
	pool, err := rec.pools.driver(rec.pools.home())
	if err != nil {
		return err
	}
	have, err := pool.ImportImage(ctx, in)
	if err != nil {
		// The caller's context may have ended; the status must still be written.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		reported := true
		if writeErr := rec.writeStatus(ctx, img, rec.failedImport(img, err)); writeErr != nil {
			rec.log.Warn("report image status failed", "id", id, "error", writeErr)
			reported = false
		}
		return &importFailed{fmt.Errorf("import image %s: %w", id, err), reported}
	}
	return rec.writeStatus(ctx, img, ready(have, rec.o.NodeID))
}

func ready(have sds.Image, node api.NodeID) api.ImageStatus {
	return api.ImageStatus{Phase: api.ImageReady, Node: node, Sha256: have.SHA256, SizeBytes: have.SizeBytes,
		VirtualBytes: have.VirtualBytes, ProgressBytes: have.SizeBytes}
}

// writeStatus reports a status for the node that imports the image. After a
// conflict it tries again, up to three times: another field was changed, or another
// node has set the image to pending.
func (rec *imageReconciler) writeStatus(ctx context.Context, img api.Image, st api.ImageStatus) error {
	st.Cause = causeBeside(st.LastError, st.Cause)
	var err error
	for range 3 {
		if now, ok := get(rec.cache, rec.cache.images, img.Meta.ID); ok {
			img = now
		}
		if reflect.DeepEqual(img.Status, st) {
			return nil
		}
		if err = rec.report(ctx, api.KindImage, img.Meta.ID, img.Meta.Revision, st); !errors.Is(err, errStale) {
			return err
		}
	}
	return err
}
