// The captcha of the configured provider. Its script is loaded only here, in a page whose policy permits it
// (CaptchaPolicy in ui/portal.go).
import { useEffect, useRef, useState } from 'react';
import { useText } from '../i18n';

export type CaptchaProvider = 'hcaptcha' | 'turnstile' | 'recaptcha';

/** The page whose policy permits captchas. */
export const captchaPage = '/sign-up';

const scripts: Record<CaptchaProvider, { src: string; global: string }> = {
  hcaptcha: { src: 'https://js.hcaptcha.com/1/api.js?render=explicit', global: 'hcaptcha' },
  turnstile: { src: 'https://challenges.cloudflare.com/turnstile/v0/api.js?render=explicit', global: 'turnstile' },
  recaptcha: { src: 'https://www.google.com/recaptcha/api.js?render=explicit', global: 'grecaptcha' },
};

interface Options {
  sitekey: string;
  callback: (token: string) => void;
  'expired-callback': () => void;
  'error-callback': () => void;
}

/** The common part of the three providers' APIs. */
interface Widget {
  render: (at: HTMLElement, options: Options) => unknown;
  ready?: (then: () => void) => void;
}

const loaded = new Map<string, Promise<void>>();

/** load loads a script once. */
function load(src: string): Promise<void> {
  const before = loaded.get(src);
  if (before) return before;
  const now = new Promise<void>((done, failed) => {
    const script = document.createElement('script');
    script.src = src;
    script.async = true;
    script.onload = () => done();
    script.onerror = () => {
      loaded.delete(src);
      script.remove();
      failed(new Error(src));
    };
    document.head.append(script);
  });
  loaded.set(src, now);
  return now;
}

export function Captcha({
  provider,
  siteKey,
  onToken,
}: {
  provider: CaptchaProvider;
  siteKey: string;
  /** Receives the token of a solved captcha; empty when it has expired. */
  onToken: (token: string) => void;
}) {
  const { t } = useText();
  const at = useRef<HTMLDivElement>(null);
  const told = useRef(onToken);
  const [failed, setFailed] = useState(false);
  useEffect(() => {
    told.current = onToken;
  }, [onToken]);
  useEffect(() => {
    // The widget gets its own element, so that it is rendered once even where effects run twice.
    const place = document.createElement('div');
    at.current?.append(place);
    let gone = false;
    const { src, global } = scripts[provider];
    const render = (w: Widget) => {
      if (gone) return;
      w.render(place, {
        sitekey: siteKey,
        callback: (token) => told.current(token),
        'expired-callback': () => told.current(''),
        'error-callback': () => (told.current(''), setFailed(true)),
      });
    };
    load(src)
      .then(() => {
        const w = (window as unknown as Record<string, Widget | undefined>)[global];
        if (!w) throw new Error(global);
        if (provider === 'recaptcha' && w.ready) w.ready(() => render(w));
        else render(w);
      })
      .catch(() => !gone && setFailed(true));
    return () => {
      gone = true;
      place.remove();
    };
  }, [provider, siteKey]);
  return (
    <div>
      <div ref={at} />
      {failed && <p role="alert">{t('signUp.captchaFailed')}</p>}
    </div>
  );
}
