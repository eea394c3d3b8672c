"""Completion scripts for bash, zsh and fish.

Each passes the words to `mosaic __complete`, which prints lines of `value<TAB>description`, or `:files` where a file
name is expected. No space is added after values that end with =.

We do not use argcomplete: it completes neither settings after an option nor values after `key=` with descriptions, and
it takes 15 ms more per completion.
"""

BASH = r"""# bash completion for mosaic, written by: mosaic completion install --shell bash
_mosaic() {
    local value note word=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    while IFS=$'\t' read -r value note; do
        if [[ $value == :files ]]; then
            compopt -o default 2>/dev/null
            return
        fi
        [[ $value == *= ]] && compopt -o nospace 2>/dev/null
        [[ $value == *[![:alnum:]._/=@,:~+-]* && $word != [\"\']* ]] && printf -v value %q "$value"
        COMPREPLY+=("$value")
    done < <("${COMP_WORDS[0]/#\~/$HOME}" __complete bash "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null </dev/null)
}
complete -F _mosaic mosaic
"""

ZSH = r"""#compdef mosaic
# zsh completion for mosaic, written by: mosaic completion install --shell zsh
_mosaic() {
    local value note
    local -a plain plain_shown open open_shown
    while IFS=$'\t' read -r value note; do
        if [[ $value == :files ]]; then
            _files
            return
        fi
        if [[ $value == *= ]]; then
            open+=("$value") open_shown+=("${value}${note:+  -- $note}")
        else
            plain+=("$value") plain_shown+=("${value}${note:+  -- $note}")
        fi
    done < <(${~words[1]} __complete zsh "${(@Q)words[2,CURRENT]}" 2>/dev/null </dev/null)
    (( $#open )) && compadd -l -S '' -d open_shown -a open
    (( $#plain )) && compadd -l -d plain_shown -a plain
}
if [[ $funcstack[1] == _mosaic ]]; then
    _mosaic "$@"
else
    (( $+functions[compdef] )) || { autoload -Uz compinit && compinit; }
    compdef _mosaic mosaic
fi
"""

FISH = r"""# fish completion for mosaic, written by: mosaic completion install --shell fish
function __mosaic_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct | string unescape 2>/dev/null)
    set -l lines ($words[1] __complete fish $words[2..-1] "$current" 2>/dev/null </dev/null)
    if test "$lines[1]" = ":files"
        __fish_complete_path "$current"
    else
        printf '%s\n' $lines
    end
end
complete -c mosaic -f -a '(__mosaic_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
