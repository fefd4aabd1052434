// The captcha of the provider that an operator has set. Its script is loaded here only,
// in a page whose policy allows it (CaptchaPolicy in ui/portal.go).
import { useEffect, useRef, useState } from 'react';
import { useText } from '../i18n';

export type CaptchaProvider = 'hcaptcha' | 'turnstile' | 'recaptcha';

/** The page whose policy lets captchas run. */
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

/** What the three have in common. */
interface Widget {
  render: (at: HTMLElement, options: Options) => unknown;
  ready?: (then: () => void) => void;
}

const loaded = new Map<string, Promise<void>>();

/** load a script once. */
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
  /** The token of a captcha that was solved; empty when it is too old. */
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
    // The widget gets an element of its own: it is there once, also where effects run twice.
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
