import { CodeBlock, CodeBlockAction, CodeBlockCode, Button } from '@patternfly/react-core';
import { CopyIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { useText } from '../i18n';

export function Copyable({ label, text }: { label: string; text: string }) {
  const { t } = useText();
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2000);
  };
  return (
    <CodeBlock
      actions={
        <CodeBlockAction>
          <span className="basalt-note">{label}</span>{' '}
          <Button
            variant="plain"
            icon={<CopyIcon />}
            aria-label={`${t('common.copy')}: ${label}`}
            onClick={() => void copy().catch(() => undefined)}
          />
          <span role="status">{copied && t('common.copied')}</span>
        </CodeBlockAction>
      }
    >
      <CodeBlockCode>{text}</CodeBlockCode>
    </CodeBlock>
  );
}
