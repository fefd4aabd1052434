{* All values are untrusted: each is escaped. *}
{if $machine}
<form method="post" action="{$here|escape:'html'}">
{if isset($token)}    <input type="hidden" name="token" value="{$token|escape:'html'}">
{/if}    <input type="hidden" name="modop" value="custom">
    <input type="hidden" name="a" value="reinstall">
{if $wrong}    <div class="alert alert-warning" role="alert">{$words.reinstall_wrong|escape:'html'}</div>
{/if}    <p>{$words.reinstall_help|escape:'html'}</p>
    <p><label>{$words.image|escape:'html'} <select name="basalt_image" class="form-control">
{foreach $images as $i}        <option value="{$i|escape:'html'}">{$i|escape:'html'}</option>
{/foreach}    </select></label></p>
    <p><label>{$words.reinstall_confirm|escape:'html'} <code>{$machine|escape:'html'}</code> <input type="text" name="basalt_confirm" class="form-control" autocomplete="off" required></label></p>
    <p><button type="submit" class="btn btn-danger">{$words.reinstall|escape:'html'}</button> <a class="btn btn-default" href="{$here|escape:'html'}">{$words.back|escape:'html'}</a></p>
</form>
{else}
<div class="alert alert-warning" role="alert">{$words.no_machine|escape:'html'}</div>
{/if}
