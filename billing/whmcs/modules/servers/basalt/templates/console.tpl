<p>{$words.console_help|escape:'html'}</p>
<p>
    <a class="btn btn-default" href="{$login|escape:'html'}" target="_blank" rel="noopener noreferrer">{$words.open_portal|escape:'html'}</a>
    <a class="btn btn-primary" href="{$console|escape:'html'}" target="_blank" rel="noopener noreferrer">{$words.console|escape:'html'}</a>
</p>
