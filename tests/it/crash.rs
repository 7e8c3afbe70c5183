//! Kills between every two durable writes. Places: life-before-record, life-after-record,
//! conversation-before-turn, conversation-after-turn, mail-before-append, mail-after-append,
//! board-before-append, board-after-append.
