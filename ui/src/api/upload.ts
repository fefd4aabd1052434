// Uploads an image with progress, which fetch does not report. If the upload fails or is cancelled, the image that
// was created for it is deleted again, as the command does.
import { api, ApiError, base, ok, refused, type Problem, type Schemas } from './client';

type Image = Schemas['Image'];

export interface Sending {
  done: Promise<void>;
  cancel: () => void;
}

/** formatOf detects the format from a file's first bytes, or else its name; QEMU's docs/interop/qcow2 has the magic. A
 * disc may also be a disk, so its content does not tell. */
export async function formatOf(file: File): Promise<'qcow2' | 'raw' | 'iso'> {
  const head = new Uint8Array(await file.slice(0, 4).arrayBuffer());
  if (head.length === 4 && [0x51, 0x46, 0x49, 0xfb].every((b, i) => head[i] === b)) return 'qcow2';
  return /\.iso$/i.test(file.name) ? 'iso' : 'raw';
}

function put(id: string, file: Blob, onProgress: (bytes: number) => void, xhr: XMLHttpRequest): Promise<void> {
  return new Promise((resolve, reject) => {
    xhr.open('PUT', `${base}/v1/images/${encodeURIComponent(id)}/content`);
    xhr.setRequestHeader('Content-Type', 'application/octet-stream');
    xhr.upload.onprogress = (e) => onProgress(e.loaded);
    xhr.onerror = () => reject(new ApiError({ code: 'unreachable', detail: '' }));
    xhr.onabort = () => reject(new DOMException('', 'AbortError'));
    xhr.onload = () => {
      if (xhr.status < 300) return resolve();
      let body: Partial<Problem> | undefined;
      try {
        body = JSON.parse(xhr.responseText) as Problem;
      } catch {
        // The response came from something in front of the API.
      }
      reject(refused(xhr.status, body));
    };
    xhr.send(file);
  });
}

/** send creates the image and uploads the file. */
export function send(image: Image, file: Blob, onProgress: (bytes: number) => void): Sending {
  const xhr = new XMLHttpRequest();
  let cancelled = false;
  const run = async () => {
    const made = await ok(api.POST('/v1/images', { body: image }));
    const id = made.meta.id ?? '';
    const remove = () => ok(api.DELETE('/v1/images/{id}', { params: { path: { id } } })).catch(() => undefined); // it stays Pending and has to be deleted by hand
    const left = () =>
      void globalThis
        .fetch(`${base}/v1/images/${id}`, { method: 'DELETE', keepalive: true, credentials: 'same-origin' })
        .catch(() => undefined);
    window.addEventListener('pagehide', left);
    try {
      if (cancelled) throw new DOMException('', 'AbortError');
      await put(id, file, onProgress, xhr);
    } catch (e) {
      await remove();
      throw e;
    } finally {
      window.removeEventListener('pagehide', left);
    }
  };
  return {
    done: run(),
    cancel: () => {
      cancelled = true;
      xhr.abort();
    },
  };
}
